"""Makes children of process 1 instead of its own."""
# ends: exit

import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
me = os.getpid()
for number in (signal.SIGCHLD, signal.SIGKILL, signal.SIGINT, 0):
    for _ in range(3):
        libc.syscall(clone, ctypes.c_long(0x8000 | number), 0, 0, 0, 0)
        if os.getpid() != me:
            os._exit(7)
print("done")
