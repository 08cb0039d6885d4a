#!/usr/bin/env bash
# Trains transcoders for the starter, one for each layer, from the norm that feed-forward reads to what
# it gives, on stories of the microworld that the starter was trained on; rounds their matrices to
# int8, measures each on other stories, and finds the words that their features answer to.
#
#   scripts/train_transcoders.sh [OUT]         default: runs/starter-transcoders
#
# OUT/layer_0 … OUT/layer_5 are directories in SAELens's layout. A few minutes a layer on one core.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}

out=${1:-runs/starter-transcoders}
stories=$out-stories.txt
mkdir -p "$(dirname "$out")"
"$heed" microworld --seed 1 --stories 20000 --out "$stories"
"$heed" microworld --seed 20260 --stories 1000 --out "$out-held-out.txt"
for layer in 0 1 2 3 4 5; do
  "$heed" sae train -m starter --data "$stories" --point blocks.$layer.ln2.hook_normalized \
    --to blocks.$layer.hook_mlp_out --features 864 -k 16 --batch 1024 --steps 3000 --rate 1e-3 \
    --dead-after 100000 -o "$out/layer_$layer"
done
python3 scripts/round_transcoders.py "$out"/layer_*/sae_weights.safetensors
for layer in 0 1 2 3 4 5; do
  "$heed" sae eval "$out/layer_$layer" -m starter --data "$out-held-out.txt"
done
PYTHONPATH=${PYTHONPATH:-build/release/python} python3 scripts/name_features.py "$out"
