#!/usr/bin/env bash
# Compares heed's GPT-2 tokenizer with tiktoken (npm): all English test data and 100,000 random
# texts. Usage: run.sh TOKENIZER_TESTS BUILD_DIR
#   TOKENIZER_TESTS  the built test program tokenizer_tests
#   BUILD_DIR        where the npm package and the records go (made; never the source tree)
# Exit status: 0 equal; 77 could not be run (no Node.js, no network, no data); else different.
set -euo pipefail

if [ $# -ne 2 ]; then
  sed -n 's/^# \{0,1\}//; 2,3p' "$0" >&2
  exit 2
fi
tests=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
data=$(realpath -m "${HEED_TEST_DATA:-$here/../../../../shared/data}")
mkdir -p "$2"
build=$(realpath "$2")

skip() {
  echo "skipped: $1" >&2
  exit 77
}
command -v node >/dev/null && command -v npm >/dev/null || skip "Node.js and npm are needed"
[ -f "$data/gpt2/vocab.json" ] || skip "no test data in $data (set HEED_TEST_DATA)"

cp "$here/package.json" "$here/package-lock.json" "$here/oracle.mjs" "$here/random_text.mjs" "$build/"
cd "$build"
if ! cmp -s package-lock.json installed-lock.json; then
  npm ci --no-audit --no-fund --loglevel=error || skip "npm ci failed"
  cp package-lock.json installed-lock.json
fi
node oracle.mjs "$data" "$build/records.bin"
HEED_TEST_DATA="$data" HEED_TIKTOKEN_RECORDS="$build/records.bin" \
  "$tests" --gtest_filter='Oracle.*' --gtest_brief=1
