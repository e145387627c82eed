"""What the house measures: how large it is, how small an algorithm is, and how far one call goes."""
