#!/usr/bin/env bash
# run.sh CHECKPOINT_TESTS DIR: writes a thousand random blocks of every type of weights into a GGUF
# file, has heed read it, and compares every bit with an independent reading of the format in numpy.
# 77: cannot be asked here.
set -euo pipefail
tests=$1
directory=$2
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || exit 77
rm -rf "$directory"
mkdir -p "$directory"
"$python" "$here/gguf_blocks.py" write "$directory/blocks.gguf"
HEED_GGUF_FILE="$directory/blocks.gguf" HEED_GGUF_NUMBERS="$directory/numbers.f32" \
  "$tests" --gtest_filter=GgufOracle.UnpacksAFile --gtest_brief=1
"$python" "$here/gguf_blocks.py" compare "$directory/blocks.gguf" "$directory/numbers.f32"
