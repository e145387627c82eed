#!/bin/sh
# One run as a job that may be taken away at any time: begins the run, or continues it from where it stopped.
#
#   CONFIG=config.yaml RUN=first RUNS=/data/runs sh job.sh [options of `run` and `resume`, such as --max-minutes 50]
#
# The command takes this shell's place, so that a signal reaches it: SIGTERM pauses the run in order (exit code 130).
set -eu
RUNS=${RUNS:-runs}

if skillopt-es log "$RUN" --dir "$RUNS" --json 2>/dev/null | head -n 1 | grep -q RunStarted; then
  exec skillopt-es resume "$RUN" --dir "$RUNS" --quiet "$@"
fi
exec skillopt-es run "$CONFIG" --run "$RUN" --dir "$RUNS" --quiet "$@"
