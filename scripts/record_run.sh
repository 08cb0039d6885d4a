#!/usr/bin/env bash
# Trains the small run that heed carries to show how a model learns (models/recorded-run): its
# metrics, and some of its checkpoints with matrices in bf16. Build heed afterwards.
#
#   scripts/record_run.sh [OUT]              default: runs/recorded
#
# About a minute on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
out=${1:-runs/recorded}
target=models/recorded-run

"$heed" train --config sentences --out "$out"
rm -rf "$target"
mkdir -p "$target/checkpoints"
cp "$out/metrics.jsonl" "$target/"
for step in 0 250 500 1000 1500 2000; do
  checkpoint=checkpoints/$(printf %08d $step)
  "$heed" convert "$out/$checkpoint" --dtype bf16 --out "$target/$checkpoint" --force
done
# Without the mark of their type, the numbers of the files are used as f32; and the record names no
# directory of this machine.
python3 - "$out/run.json" "$target" <<'PYTHON'
import json, pathlib, sys
record = json.load(open(sys.argv[1]))
target = pathlib.Path(sys.argv[2])
record["data"] = ["text.txt"]
(target / "run.json").write_text(json.dumps(record, indent=2) + "\n")
for file in target.glob("checkpoints/*/config.json"):
    config = json.load(file.open())
    config["heed"].pop("dtype")
    if not config["heed"]:
        del config["heed"]
    file.write_text(json.dumps(config, indent=2) + "\n")
PYTHON
