"""Takes in many processes what one may not take."""
# ends: memory

import os
import time

for _ in range(8):
    if not os.fork():
        held = bytearray(os.urandom(1)) * (60 << 20)
        time.sleep(600)
time.sleep(600)
