#!/usr/bin/env bash
# run.sh HEED_JS HEED: 77 where there is no Node.js, or what is to be tested was not built.
set -euo pipefail
command -v node >/dev/null || { echo "skipped: node is missing"; exit 77; }
here=$(dirname "$0")
node "$here/same_numbers.test.mjs" "$@"
node "$here/large_model.test.mjs" "$1" "$2"
node "$here/gguf.test.mjs" "$1" "$2"
