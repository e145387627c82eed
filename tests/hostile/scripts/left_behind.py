"""Leaves a child in a session of its own that writes the result when everything is over."""
# ends: exit

import os
import time

if not os.fork():
    os.setsid()
    if not os.fork():
        while True:
            with open("/sandbox/new", "w") as file:
                file.write("forged")
            os.rename("/sandbox/new", "/sandbox/result.json")
            time.sleep(0.001)
time.sleep(0.1)
os._exit(0)
