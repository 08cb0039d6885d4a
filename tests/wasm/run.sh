#!/usr/bin/env bash
# run.sh HEED_JS HEED: 77 where there is no Node.js.
set -euo pipefail
command -v node >/dev/null || { echo "skipped: node is missing"; exit 77; }
exec node "$(dirname "$0")/same_numbers.test.mjs" "$@"
