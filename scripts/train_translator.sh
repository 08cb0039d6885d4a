#!/usr/bin/env bash
# Trains the translator that heed carries, from nothing, with heed alone: writes the microworld's
# pairs of English and German, learns a vocabulary and a model from them, and measures the model on
# pairs that it has not seen.
#
#   scripts/train_translator.sh [OUT]                     default: runs/translator
#   scripts/install_model.sh translator runs/translator/last    makes it the one that heed carries
#
# About an hour on two cores with AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}

out=${1:-runs/translator}
pairs=$out-pairs
mkdir -p "$(dirname "$out")"
"$heed" microworld --pairs --seed 1 --stories 1200000 --valid 2000 --out "$pairs"
"$heed" train --config translator --pairs "$pairs"/train.{en,de} \
  --valid-pairs "$pairs"/valid.{en,de} --out "$out"
"$heed" microworld check --pairs -m "$out/last" --seed 20260
