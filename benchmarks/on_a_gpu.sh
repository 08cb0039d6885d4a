#!/usr/bin/env bash
# A GPU with a model of GPT-2's size and random weights: on_a_gpu.sh HEED. Beside PyTorch, compiled and in turns, where
# python3 (or PYTHON) has it with CUDA.
set -euo pipefail
heed=$1
here=$(dirname "$0")
python=${PYTHON:-python3}
rival=()
beside() {  # WORK OPTIONS…: the options that compare
  rival=()
  if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    rival=(--against "$python $here/gpt2_in_pytorch.py $* --device cuda --compile")
  fi
}
beside train --batch 64 --context 1024 --dtype bf16
"$heed" bench train --device cuda --config gpt2 --dtype bf16 --batch 64 -c 1024 "${rival[@]}"
beside train --batch 4 --context 1024 --dtype bf16
"$heed" bench train --device cuda --config gpt2 --dtype bf16 --batch 4 -c 1024 "${rival[@]}"
for batch in 1 32; do
  beside prompt --batch $batch --context 512 --dtype bf16
  "$heed" bench prompt --device cuda --config gpt2 --dtype bf16 --batch $batch -c 512 "${rival[@]}"
done
for batch in 1 32; do
  "$heed" bench decode --device cuda --config gpt2 --dtype bf16 --batch $batch -n 128
done
for dtype in int8 int4; do
  "$heed" bench decode --device cuda --config gpt2 --dtype $dtype -n 128
done
"$heed" bench attention --device cuda --config gpt2 --dtype bf16 -c 4096,16384
