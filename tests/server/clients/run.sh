#!/usr/bin/env bash
# Asks `heed serve` with OpenAI's client (npm). Usage: run.sh HEED BUILD_DIR
#   HEED       the program
#   BUILD_DIR  where the npm package goes (made; never the source tree)
# Exit status: 0 all answers are as the client expects; 77 could not be run (no Node.js, no network);
# else not.
set -euo pipefail

if [ $# -ne 2 ]; then
  sed -n 's/^# \{0,1\}//; 2,4p' "$0" >&2
  exit 2
fi
heed=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
build=$(realpath "$2")

skip() {
  echo "skipped: $1" >&2
  exit 77
}
command -v node >/dev/null && command -v npm >/dev/null || skip "Node.js and npm are needed"

cp "$here/package.json" "$here/package-lock.json" "$here/openai.test.mjs" "$build/"
cd "$build"
if ! cmp -s package-lock.json installed-lock.json; then
  npm ci --no-audit --no-fund --loglevel=error || skip "npm ci failed"
  cp package-lock.json installed-lock.json
fi
HEED_BINARY="$heed" node --test openai.test.mjs
