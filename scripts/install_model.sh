#!/usr/bin/env bash
# Makes a trained model one that heed carries.
#
#   scripts/install_model.sh NAME DIR    the model in DIR becomes models/NAME
#
# Stores the matrices in bf16, computes with them in f32, and measures the claims of the page's
# examples again; fails where one does not hold. Build heed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
carried=models/$1
stored=${2%/}-bf16

"$heed" convert "$2" --dtype bf16 --out "$stored" --force
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
"$heed" microworld examples -m "$stored" --claims "$carried/claims.json" \
  --out "$carried/examples.json"
# A run's own title is the name of its text.
python3 - "$stored/reading.json" "$carried/reading.json" <<'PYTHON'
import json, os, sys
read = json.load(open(sys.argv[1]))
if os.path.exists(sys.argv[2]):
    read["title"] = json.load(open(sys.argv[2]))["title"]
json.dump(read, open(sys.argv[2], "w"), indent=1, ensure_ascii=False)
open(sys.argv[2], "a").write("\n")
PYTHON
cp "$stored"/{config.json,model.safetensors,tokenizer.json} "$carried"/
