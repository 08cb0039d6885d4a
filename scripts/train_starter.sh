#!/usr/bin/env bash
# Trains the starter model, from nothing, with heed alone: writes the microworld's stories, learns a
# tokenizer and a model from them, and measures the model on stories it has not seen.
#
#   scripts/train_starter.sh [OUT]              default: runs/starter
#   scripts/train_starter.sh --install [OUT]    make a trained OUT the model that heed carries
#
# About 40 minutes on two cores with AVX-512. --install stores the matrices in bf16, computes with
# them in f32, and measures the claims of the page's examples again; it fails where one does not
# hold. Build heed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}

if [ "${1:-}" = --install ]; then
  out=${2:-runs/starter}
  stored=$out-bf16
  "$heed" convert "$out/last" --dtype bf16 --out "$stored" --force
  # Without this mark, the numbers of the file are used as f32.
  python3 - "$stored/config.json" <<'PYTHON'
import json, sys
config = json.load(open(sys.argv[1]))
config["heed"].pop("dtype")
if not config["heed"]:
    del config["heed"]
json.dump(config, open(sys.argv[1], "w"), indent=2)
open(sys.argv[1], "a").write("\n")
PYTHON
  "$heed" microworld examples -m "$stored" --claims models/starter/claims.json \
    --out models/starter/examples.json
  cp "$stored"/{config.json,model.safetensors,tokenizer.json} models/starter/
  exit
fi

out=${1:-runs/starter}
stories=$out-stories.txt
mkdir -p "$(dirname "$out")"
"$heed" microworld --seed 1 --stories 200000 --out "$stories"
"$heed" train --config starter --data "$stories" --out "$out"
"$heed" microworld check -m "$out/last" --seed 20260 --stories 1000
