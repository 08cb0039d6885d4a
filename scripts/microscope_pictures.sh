#!/usr/bin/env bash
# Draws the pictures of docs/microscope.md with the starter model.
#   scripts/microscope_pictures.sh [build/release/bin/heed]
set -euo pipefail
heed=${1:-build/release/bin/heed}
folder=$(dirname "$0")/../docs/pictures

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
