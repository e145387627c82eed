"""Prints README's first two shell commands, NUL between them: the demo and the tests, as a newcomer copies them."""

import re
import sys
from pathlib import Path

start = re.search(r"^## Start$(.*?)^## ", Path(sys.argv[1]).read_text(), re.MULTILINE | re.DOTALL)
commands = re.findall(r"^```sh\n(.*?)^```", start[1] if start else "", re.MULTILINE | re.DOTALL)[:2]
if len(commands) != 2 or "skillopt-es run" not in commands[0] or "pytest" not in commands[1]:
    sys.exit(f"README's Start does not begin with the demo's command and the tests' command: {commands}")
sys.stdout.write("\0".join(commands))
