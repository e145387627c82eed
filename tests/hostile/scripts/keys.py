"""Looks for keys of the user whose machine this is, and leaves some."""
# ends: exit

import ctypes
import os

ADD, REQUEST, CONTROL = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
for keyring in (-3, -4, -5):  # of the session, of the user, of the user's sessions
    found = libc.syscall(CONTROL, 10, keyring, b"user", b"hostile-canary", 0)
    if found > 0:
        print("ESCAPED: found a key in", keyring, flush=True)
    if libc.syscall(ADD, b"user", b"left", b"x", 1, keyring) > 0:
        print("ESCAPED: left a key in", keyring)
if libc.syscall(REQUEST, b"user", b"hostile-canary", None, 0) > 0:
    print("ESCAPED: was given a key")
if libc.syscall(CONTROL, 1, None) > 0:
    print("ESCAPED: has keyrings")
for path in ("/proc/keys", "/proc/key-users"):
    if os.path.exists(path) and open(path).read():
        print("ESCAPED: read", path)
