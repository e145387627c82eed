"""A folder of skills that evolves: which there are, what each says, and what it is called and described as."""
