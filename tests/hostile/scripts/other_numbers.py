"""Calls the kernel by the numbers of another processor, which a filter by number would not know."""
# ends: signal

import ctypes
import mmap
import os
import signal

if os.uname().machine != "x86_64":
    os.kill(os.getpid(), signal.SIGKILL)
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))  # getpid by `int 0x80`
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("ESCAPED: process", ctypes.CFUNCTYPE(ctypes.c_int)(address)(), flush=True)
