#!/usr/bin/env bash
# Grows an induction head: trains a model of two layers, one head each, on random sequences in which
# stretches come again, shows when the head came, and what the model is without it.
#
#   scripts/train_induction.sh [OUT]     default: runs/induction
#
# About two minutes on two cores with AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
out=${1:-runs/induction}

mkdir -p "$(dirname "$out")"
python3 scripts/repeated_sequences.py > "$out-sequences.txt"
"$heed" train --data "$out-sequences.txt" --out "$out" --tokenizer char --measure induction \
  --set layers=2 --set heads=1 --set head_size=64 --set channels=128 --set feed_forward=64 \
  --set context=128 --set bias=true --set tied_head=false --set initial_deviation=0.088 \
  --set windows=documents --set batch_size=32 --set steps=1600 --set precision=bf16 \
  --set learning_rate=0.003 --set min_learning_rate=0.0003 --set beta2=0.99 \
  --set weight_decay=0.01 --set evaluate_every=200 --set evaluation_batches=5 \
  --set checkpoint_every=0 --set sample_every=0

# One sequence of 32 letters twice a line, a line a window: what each head does with them.
python3 scripts/repeated_sequences.py --halves --length 63 --lines 200 --seed 2 > "$out-halves.txt"
"$heed" heads -m "$out/last" --text "$out-halves.txt" --context 64 --detect induction
"$heed" induction -m "$out/last" --length 32 --metrics "$out/metrics.jsonl"
