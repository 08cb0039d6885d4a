#!/usr/bin/env bash
# Installs a build into an empty prefix, builds examples/ against it as a stranger would, and runs
# examples/version.cc and examples/first_look.cc, which docs/library.md shows. Arguments: cmake, build
# directory, source directory, version, C++ compiler, compiler flags.
set -euo pipefail
cmake=$1 build=$2 source=$3 version=$4 compiler=$5 flags=$6

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$cmake" --install "$build" --prefix "$place/prefix" >"$place/install.log"
cp -r "$source/examples" "$place/examples"
"$cmake" -S "$place/examples" -B "$place/build" -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$place/build"

# What is installed must not lead back to where it was built.
if grep -rlF -e "$build" -e "$source/src" "$place/prefix/include" "$place/prefix"/lib*/cmake \
    "$place/prefix"/lib*/*/cmake 2>/dev/null; then
  echo "installed files name the build or source directory" >&2
  exit 1
fi

said=$("$place/build/version")
expected="heed $version, not_found"
if [ "$said" != "$expected" ]; then
  echo "examples/version.cc printed '$said' instead of '$expected'" >&2
  exit 1
fi

# The first program of docs/library.md is all of first_look.cc but its first line.
if ! diff <(tail -n +2 "$source/examples/first_look.cc") \
    <(awk '/^```cpp/ {shown = 1; next} /^```/ && shown {exit} shown' "$source/docs/library.md"); then
  echo "the program of docs/library.md is not examples/first_look.cc" >&2
  exit 1
fi
look=$("$place/build/first_look")
if [[ $look != *"it attends to sleek with weight 0.9"* ]]; then
  echo "examples/first_look.cc printed '$look'" >&2
  exit 1
fi
