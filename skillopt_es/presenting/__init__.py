"""What a run says to people and programs: words, numbers and documents that the terminal and the page share."""
