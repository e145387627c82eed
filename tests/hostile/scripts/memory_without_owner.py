"""Looks for memory that stays when it is unmapped: shared pages, other devices, its own input."""
# ends: exit

import mmap
import os

for what in ("anonymous", "/dev/zero", "huge"):
    try:
        if what == "anonymous":
            page = mmap.mmap(-1, 1 << 20)
        elif what == "huge":
            page = mmap.mmap(-1, 2 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
        else:
            page = mmap.mmap(os.open(what, os.O_RDWR), 1 << 20)
        print("ESCAPED: has", what)
    except (OSError, ValueError):
        pass
for path, flags in (("/proc/self/fd/0", os.O_RDWR), ("/dev/stdin", os.O_RDWR)):
    try:
        os.truncate(os.open(path, flags), 50 << 20)
        print("ESCAPED: its input grows")
    except OSError:
        pass
try:
    os.write(0, b"x" * (1 << 20))
    print("ESCAPED: writes to its input")
except OSError:
    pass
assert open("/dev/zero", "rb").read(3) == b"\0\0\0"
