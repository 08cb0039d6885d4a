#!/usr/bin/env bash
# Trains the translator that heed carries, from nothing, with heed alone: writes the microworld's
# pairs of English and German, learns a vocabulary and a model from them, trains the model again from
# a high learning rate on other pairs, and measures it on pairs that it has not seen.
#
#   scripts/train_translator.sh [OUT]                     default: runs/translator
#   scripts/install_model.sh translator runs/translator/last    makes it the one that heed carries
#
# About 80 minutes on two cores with AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}

out=${1:-runs/translator}

# write_pairs DIR FIRST COUNT
write_pairs() {
  "$heed" microworld --pairs --seed 1 --first "$2" --stories "$3" --valid 2000 --out "$1"
}

mkdir -p "$(dirname "$out")"
write_pairs "$out-pairs" 0 1200000
valid=("$out-pairs"/valid.{en,de})
"$heed" train --config translator --pairs "$out-pairs"/train.{en,de} --valid-pairs "${valid[@]}" \
  --out "$out-first"

# What the first run has not learned is rare: a second one, with other pairs, sees more of it.
write_pairs "$out-more" 1300000 1500000
"$heed" train --config translator --from "$out-first/last" --pairs "$out-more"/train.{en,de} \
  --valid-pairs "${valid[@]}" --out "$out" --seed 3 --set steps=14000 warmup_steps=300
"$heed" microworld check --pairs -m "$out/last" --seed 20260 --stories 4000
