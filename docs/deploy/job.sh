#!/bin/sh
# One run as a job that may be taken away at any time: begins the run, or continues it from where it stopped.
#
#   CONFIG=config.yaml RUN=first RUNS=/data/runs sh job.sh [options of `run` and `resume`, such as --max-minutes 50]
#
# When the run is complete, the job ends with exit code 0. With CONTINUE=yes it trains on instead: the runs first-2, first-3
# and so on each begin with the best skill of the one before (`skillopt-es continue`).
#
# The command takes this shell's place, so that a signal reaches it: SIGTERM pauses the run in order (exit code 130).
set -eu
RUNS=${RUNS:-runs}
CONTINUE=${CONTINUE:-}

last=$RUN
number=2
while [ -n "$CONTINUE" ] && [ -e "$RUNS/$RUN-$number" ]; do
  last=$RUN-$number
  number=$((number + 1))
done

if ! skillopt-es log "$last" --dir "$RUNS" --json 2>/dev/null | head -n 1 | grep -q RunStarted; then
  exec skillopt-es run "$CONFIG" --run "$last" --dir "$RUNS" --quiet "$@"
fi
if ! skillopt-es status "$last" --dir "$RUNS" --json | grep -q '^  "status": "completed"'; then
  exec skillopt-es resume "$last" --dir "$RUNS" --quiet "$@"
fi
if [ -z "$CONTINUE" ]; then
  echo "$last is complete"
  exit 0
fi
exec skillopt-es continue "$last" --name "$RUN-$number" --dir "$RUNS" --quiet "$@"
