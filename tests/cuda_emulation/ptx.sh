#!/bin/sh
# Checks that device code compiles for a GPU, on a machine without CUDA: Clang compiles each file
# to PTX, without linking. If NVIDIA's assembler is there too, it assembles that.
#   ptx.sh CLANG FILE.cu ... [-- FLAGS of Clang]
# Environment: HEED_PTXAS, the assembler [ptxas]. Exits with 77 if CLANG is missing or has no NVPTX.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clang=$1
shift
capability=sm_80
assembler=${HEED_PTXAS:-ptxas}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Without the search for an installation of CUDA, Clang assumes an old version of PTX.
compile() {
  "$clang" -x cuda --cuda-device-only --cuda-gpu-arch=$capability -nocudainc -nocudalib \
    -Wno-unknown-cuda-version -Xclang -target-feature -Xclang +ptx70 -std=c++20 -O2 -S \
    -Wall -Wextra -Wno-unused-function -Werror \
    -I "$here/include" -I "$here/clang" -include "$here/clang/device.h" "$@"
}

command -v "$clang" > /dev/null || exit 77
echo '__attribute__((global)) void nothing() {}' > "$out/nothing.cu"
"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=$capability -nocudainc -nocudalib \
  -Xclang -target-feature -Xclang +ptx70 -S "$out/nothing.cu" -o "$out/nothing.ptx" \
  2> /dev/null || exit 77

files=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  files="$files
$1"
  shift
done
[ $# -eq 0 ] || shift

IFS='
'
for file in $files; do
  compile "$@" "$file" -o "$out/code.ptx"
  grep -q '\.entry' "$out/code.ptx" || {
    echo "$file: no kernel" >&2
    exit 1
  }
  if command -v "$assembler" > /dev/null; then
    "$assembler" -arch=$capability -c "$out/code.ptx" -o "$out/code.cubin"
  fi
done
