"""Prints without end on both streams, from several processes."""
# ends: timeout

import os

os.fork()
os.fork()
line = b"x" * 65_536
while True:
    os.write(1, line)
    os.write(2, line)
