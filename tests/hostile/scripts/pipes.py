"""Closes its input and output, and makes them such as nobody waits for."""
# ends: exit

import fcntl
import os

for number in (0, 1, 2):
    fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    os.close(number)
os._exit(0)
