#!/usr/bin/env bash
# Compares the greedy text of the embedded models between two builds of heed, such as this machine's
# and one that runs under emulation. Rounding differs between instruction sets, so logits do too, in
# f32 by less than separates the likeliest token from the next. In int8 and int4, where activations are
# rounded to integers, a difference may be a near tie: AVX-512 and NEON have one in int8.
#
#   scripts/same_greedy_text.sh build/release/bin/heed qemu-aarch64 -L build/aarch64-root build/aarch64/bin/heed
set -euo pipefail

one=$1
other=("${@:2}")
differences=0

compare() {
  local expected actual
  expected=$("$one" "$@")
  actual=$("${other[@]}" "$@")
  if [ "$expected" = "$actual" ]; then
    echo "same: heed $*"
  else
    printf 'different: heed %s\n--- %s\n%s\n--- %s\n%s\n' "$*" "$one" "$expected" "${other[*]}" "$actual"
    differences=$((differences + 1))
  fi
}

for prompt in "Once upon a time" "The cat didn't cross" "Harry, a wizard," "In the garden of the queen"; do
  for dtype in f32 int8 int4; do
    compare generate --greedy --max-tokens 60 --dtype "$dtype" --prompt "$prompt"
  done
done
compare translate "The lamp is new because it is small."
compare translate "The crane lifts the car."

exit $((differences > 0))
