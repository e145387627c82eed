"""Takes as much in files as it may, and the same again in memory."""
# ends: memory

import os
import time

with open("file", "wb") as file:
    file.write(b"x" * (30 << 20))
for _ in range(3):
    if not os.fork():
        held = bytearray(b"x") * (40 << 20)
        time.sleep(600)
time.sleep(600)
