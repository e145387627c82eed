"""`python -m skillopt_es`: the command, where no script of that name is on the path."""

from __future__ import annotations

from skillopt_es.cli.main import main

if __name__ == "__main__":
    main()
