#!/usr/bin/env bash
# Draws the pictures of README.md, docs/command_line.md and docs/microscope.md with the starter model.
#   scripts/pictures.sh [build/release/bin/heed [FOLDER]]
# The others: docs/pictures/performance.svg by benchmarks/beside_peers.py, explorer.png by
# web/tools/picture.mjs; floors.svg is drawn by hand.
set -euo pipefail
heed=${1:-build/release/bin/heed}
scripts=$(dirname "$0")
folder=${2:-$scripts/../docs/pictures}

# What a command prints, in a terminal of 80 columns.
terminal() { # NAME WHAT_IS_SHOWN ARGUMENTS...
  local name=$1 shown=$2
  shift 2
  COLUMNS=80 "$heed" "$@" --color always | "$scripts/terminal_picture.py" "$shown" > "$folder/$name.svg"
}
terminal tour "heed tour" tour
hare="Once upon a time, a sleek blue hare"
terminal walk "heed attend \"$hare\" --word hare" attend "$hare" --word hare

start="The painter, the cook and the nurse came down the road. By the well lay a heavy ring, and it"
story() {
  echo "$start belonged to the $1. They sent for the $1, the painter admired the ring, and so the ring came back to the"
}

"$heed" patch --clean "$(story cook)" --corrupted "$(story nurse)" --answer ' cook' --wrong ' nurse' \
  --grid resid_pre -o "$folder/patch.svg" >/dev/null
"$heed" lens "A fluffy blue creature roamed the verdant forest" --out "$folder/lens.svg" >/dev/null
"$heed" lens "$(story cook)" --attribute ' cook' --against ' nurse' --by component \
  --out "$folder/attribution.svg" >/dev/null
"$heed" heads "$(story cook)" --sort induction --out "$folder/heads.svg" >/dev/null
