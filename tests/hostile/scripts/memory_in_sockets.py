"""Keeps bytes in sockets that nobody reads."""
# ends: memory

import os
import socket
import time

for _ in range(15):
    if not os.fork():
        break
held = []
try:
    while True:
        for each in (pair := socket.socketpair()):
            each.setblocking(False)
            try:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                print("ESCAPED: has a larger buffer")
            except OSError:
                pass
            try:
                while True:
                    each.send(b"x" * 65_536)
            except OSError:
                pass
        held.append(pair)
except OSError:
    time.sleep(600)
