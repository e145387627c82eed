"""Fills the disk, with bytes and with empty files, and leaves it full."""
# ends: exit

import os

for number in range(100_000):
    try:
        open(f"f{number}", "wb").close()
    except OSError:
        break
block = b"x" * 1_000_000
for number in range(1000):
    try:
        with open(f"f{number}", "wb") as file:
            file.write(block)
    except OSError:
        break
else:
    print("ESCAPED: wrote a gigabyte")
