#!/usr/bin/env bash
# Makes a trained model one that heed carries.
#
#   scripts/install_model.sh NAME DIR [OPTION…]    the model in DIR becomes models/NAME
#
# Stores the matrices in bf16, or as the options of `heed convert` say, computes with them in f32,
# and measures the claims of the page's examples again; fails where one does not hold. reading.json
# stays, or comes from DIR where there is one. Build heed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
carried=models/$1
trained=${2%/}
shift 2
[ $# -gt 0 ] || set -- --dtype bf16
stored=$trained-stored

"$heed" convert "$trained" "$@" --compute-f32 --out "$stored" --force
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
if [ -e "$trained/reading.json" ]; then cp "$trained/reading.json" "$carried"/; fi
