#!/usr/bin/env bash
# Compiles the Unicode functions of the WebAssembly build for this machine, and compares them with utf8proc's.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compile() { "${CXX:-c++}" -std=c++20 -O1 -I "$folder" "$@"; }
compile cmake/wasm/unicode_tables.cc -lutf8proc -o "$folder/unicode_tables"
"$folder/unicode_tables" "$folder/unicode_tables.inc"
functions='get_property|category|tolower|toupper|totitle|decompose_char|normalize_utf32|grapheme_break_stateful|iterate'
sed -E "s/\butf8proc_($functions)\(/ours_\1(/" cmake/wasm/unicode.cc >"$folder/unicode.cc"
compile "$folder/unicode.cc" tests/wasm/unicode_test.cc -lutf8proc -o "$folder/unicode_test"
"$folder/unicode_test"
