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
cp "$stored"/{config.json,model.safetensors,tokenizer.json} "$carried"/
if [ -e "$trained/reading.json" ]; then cp "$trained/reading.json" "$carried"/; fi
