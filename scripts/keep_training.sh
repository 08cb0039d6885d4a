#!/usr/bin/env bash
# Trains to the end of a run, whatever ends its processes: starts the command, and starts it again
# with --resume where a process was killed, a machine failed or a disk was full.
#
#   scripts/keep_training.sh mpirun -n 4 heed train --data text.txt --out run
#
# Ends with the status of the last start: 0 when the run is done, 130 when it was asked to stop, 2 for
# a wrong call. Gives up where three starts, one after the other, have saved nothing new.
# HEED_RESTART_PAUSE: seconds between two starts [5].
set -uo pipefail

if [ $# -eq 0 ]; then
  echo "usage: $0 [mpirun … | srun …] heed train --out RUN …" >&2
  exit 2
fi

run=
words=("$@")
for i in "${!words[@]}"; do
  case "${words[i]}" in
    --out | -o) run=${words[i + 1]:-} ;;
    --out=*) run=${words[i]#--out=} ;;
  esac
done
if [ -z "$run" ]; then
  echo "$0: the command names no run: --out RUN" >&2
  exit 2
fi

saved_step() {
  sed -n 's/^ *"step": \([0-9]*\),$/\1/p' "$run/last/training_state.json" 2>/dev/null
}

# Ctrl-C in a terminal goes to the command too; a SIGTERM to this script is passed on. Either way the
# run saves, and is not started again.
stopped=0
child=
trap 'stopped=1' INT
trap 'stopped=1; kill -TERM "$child"' TERM
in_vain=0
while :; do
  before=$(saved_step)
  resume=()
  [ -e "$run/run.json" ] && [[ " $* " != *" --resume "* ]] && resume=(--resume)
  "$@" "${resume[@]}" &
  child=$!
  wait "$child"
  status=$?
  while kill -0 "$child" 2>/dev/null; do  # a signal ends the wait too
    wait "$child"
    status=$?
  done
  [ "$status" = 0 ] && exit 0
  [ "$stopped" = 1 ] && exit 130
  case $status in
    2 | 130) exit "$status" ;;
  esac
  if [ "$(saved_step)" = "$before" ]; then
    in_vain=$((in_vain + 1))
  else
    in_vain=0
  fi
  if [ "$in_vain" = 3 ]; then
    echo "$0: three starts saved nothing new; the last ended with status $status" >&2
    exit "$status"
  fi
  echo "$0: ended with status $status at step $(saved_step); starting again" >&2
  sleep "${HEED_RESTART_PAUSE:-5}"
done
