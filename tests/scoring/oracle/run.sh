#!/usr/bin/env bash
# Compares heed's scores of translations with sacreBLEU's. Usage: run.sh SCORING_TESTS BUILD_DIR [FILE…]
#   SCORING_TESTS  the built test program scoring_tests
#   BUILD_DIR      where the records go (made; never the source tree)
#   FILE           sentences, one a line, plain or .gz, to compare on as well
# Exit status: 0 equal; 77 could not be run (no sacreBLEU with NumPy); else different.
set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n 's/^# \{0,1\}//; 2,3p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
tests=$1
folder=$2
shift 2
mkdir -p "$folder"
for python in /usr/bin/python3 python3; do
  "$python" -c 'import numpy, sacrebleu' 2>/dev/null || continue
  PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore "$here/records.py" "$folder/records.json" "$@" 2>"$folder/log" ||
    { cat "$folder/log" >&2; exit 1; }
  HEED_SACREBLEU_RECORDS="$folder/records.json" "$tests" --gtest_filter='Oracle.*' --gtest_brief=1
  exit
done
echo "skipped: Python has no sacrebleu with numpy (https://github.com/mjpost/sacrebleu)" >&2
exit 77
