"""Ends itself in the way that looks most like somebody else's doing."""
# ends: signal

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
