#!/bin/bash
#SBATCH --job-name=training
#SBATCH --time=04:00:00
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@180
#
#   sbatch --export=ALL,CONFIG=config.yaml,RUN=first,RUNS=/local/runs slurm.sh
#
# job.sh has to be in the folder that you submit from.
#
# Three minutes before its time is over, or when it is preempted, the run is paused in order and the job is queued again; it
# then continues. A node that fails is the same: --requeue. RUNS has to be on a disk where files can be locked.
set -u

paused=
pause() {
  paused=yes
  kill -TERM "$run"
}
trap pause TERM

sh "${SLURM_SUBMIT_DIR:-.}/job.sh" &
run=$!
wait "$run"
code=$?
if [ -n "$paused" ]; then
  wait "$run"                     # the first one ended with the signal, not with the run
  code=$?
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
