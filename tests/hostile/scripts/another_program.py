"""Becomes another program, which is no Python and waits for ever."""
# ends: timeout

import os

os.execv("/bin/sh", ["sh", "-c", "trap '' TERM INT HUP; while :; do :; done & wait"])
