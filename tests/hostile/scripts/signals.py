"""Sends every signal to process 1 and to everybody, also as an answer to a file."""
# ends: exit

import fcntl
import os
import signal
import time

for target in (1, -1, 0):
    for number in range(1, 65):
        if target == 0 and number not in (signal.SIGURG, signal.SIGCHLD, signal.SIGWINCH):
            continue  # those would end itself
        try:
            os.kill(target, number)
        except OSError:
            pass
reading, writing = os.pipe()
for number in (signal.SIGKILL, signal.SIGINT, signal.SIGSTOP):
    try:
        fcntl.fcntl(reading, fcntl.F_SETOWN, 1)
        fcntl.fcntl(reading, getattr(fcntl, "F_SETSIG", 10), number)
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(writing, b"x")
    except OSError:
        pass
time.sleep(0.1)
print("done")
