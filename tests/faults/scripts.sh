#!/usr/bin/env bash
# Tests scripts/keep_training.sh and scripts/train.slurm: with a run whose process is killed, and with
# a cluster that is played by three functions.
#   scripts.sh HEED
set -euo pipefail
heed=$(realpath "$1")
scripts=$(realpath "$(dirname "$0")/../../scripts")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HEED_THREADS=1 HEED_RESTART_PAUSE=0

fail() {
  echo "scripts.sh: $1" >&2
  cat ./*.log >&2 || true
  exit 1
}

for i in $(seq 300); do echo "the cat saw $((i * 7 % 11)) red dogs"; done >text.txt
settings=()
for setting in layers=1 channels=32 heads=2 context=32 batch_size=8 evaluate_every=0 sample_every=0 \
  checkpoint_every=20 precision=f32 warmup_steps=10 learning_rate=3e-4; do
  settings+=(--set "$setting")
done
options=(--data text.txt "${settings[@]}")
step() { sed -n 's/^ *"step": \([0-9]*\),$/\1/p' "$1/last/training_state.json" 2>/dev/null || true; }
wait_for_step() {
  for _ in $(seq 6000); do
    [ "$(step "$1")" != "" ] && [ "$(step "$1")" -ge "$2" ] && return
    sleep 0.01
  done
  fail "$1 does not get to step $2"
}

# Processes that are killed twice.
several=()
if command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  several=(mpirun --oversubscribe -n 2)
fi
"$heed" train --out whole "${options[@]}" --set steps=600 >/dev/null 2>whole.log
"$scripts/keep_training.sh" "${several[@]}" "$heed" train --out run "${options[@]}" --set steps=600 \
  >/dev/null 2>run.log &
loop=$!
for at in 40 200; do
  wait_for_step run $at
  pkill -KILL -o -f -- "^$heed train --out run " || fail "no process to kill"
done
wait $loop || fail "the loop did not get to the end"
[ "$(step run)" = 600 ] || fail "the run is at step $(step run)"
[ "$(grep -c 'starting again' run.log)" = 2 ] || fail "started again otherwise than twice"
python3 - <<'PYTHON' || fail "other losses than those of one start"
import json
def losses(run):
    lines = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    return [line["loss"] for line in lines if "loss" in line]
one, other = losses("whole"), losses("run")
assert len(one) == len(other) == 600
assert all(abs(a - b) <= 1e-5 * a for a, b in zip(one, other))
PYTHON

# One that is asked to stop saves, and is not started again.
"$scripts/keep_training.sh" "$heed" train --out stopped "${options[@]}" --set steps=100000 \
  >/dev/null 2>stopped.log &
loop=$!
wait_for_step stopped 20
kill -TERM $loop
status=0
wait $loop || status=$?
[ $status = 130 ] || fail "a loop that is asked to stop ends with $status"
grep -q "everything is saved" stopped.log || fail "not saved"

# What fails in the same way every time is given up, and a wrong call at once.
status=0
"$scripts/keep_training.sh" "$heed" train --out none --data missing.txt 2>missing.log || status=$?
{ [ $status = 1 ] && [ "$(grep -c "missing.txt" missing.log)" = 3 ]; } || fail "not given up: $status"
status=0
"$scripts/keep_training.sh" "$heed" train --out none --wrong 2>wrong.log || status=$?
{ [ $status = 2 ] && [ "$(grep -c "heed:" wrong.log)" = 1 ]; } || fail "a wrong call is tried again"

# Slurm: srun runs the command alone, and is asked to stop when its time is over.
mkdir cluster
cat >cluster/srun <<'SRUN'
#!/usr/bin/env bash
[ "$1" = --kill-on-bad-exit=1 ] && shift
exec timeout --signal=TERM "${LIMIT:-1000}" "$@"
SRUN
cat >cluster/scontrol <<'SCONTROL'
#!/usr/bin/env bash
echo "$@" >>scontrol.log
SCONTROL
ln -s "$heed" cluster/heed
chmod +x cluster/srun cluster/scontrol
# As a user changes it: other data.
sed "s|^options=.*|options=(${options[*]} --set steps=\$STEPS)|" "$scripts/train.slurm" >job
job() { PATH="$folder/cluster:$PATH" SLURM_JOB_ID=7 HEED_RUN=queued bash job >>job.log 2>&1; }
STEPS=100000 LIMIT=2 job
[ "$(cat scontrol.log)" = "requeue 7" ] || fail "not requeued when its time was over"
first=$(step queued)
STEPS=100000 LIMIT=2 job
[ "$(step queued)" -gt "$first" ] || fail "the second job did not go on"
[ "$(wc -l <scontrol.log)" = 2 ] || fail "not requeued again"
status=0
SLURM_RESTART_COUNT=1000 STEPS=100000 LIMIT=1 job || status=$?
{ [ $status != 0 ] && [ "$(wc -l <scontrol.log)" = 2 ]; } || fail "requeued without end"
