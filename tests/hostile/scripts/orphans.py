"""Leaves orphans for process 1 to bury, as fast as it can."""
# ends: timeout

import os

while True:
    try:
        child = os.fork()
    except OSError:
        continue
    if not child:
        try:
            os.fork()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
