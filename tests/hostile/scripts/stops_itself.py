"""Stops, with all that it started."""
# ends: timeout

import os
import signal

if not os.fork():
    os.kill(os.getpid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
