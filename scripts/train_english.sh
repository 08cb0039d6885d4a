#!/usr/bin/env bash
# Trains the model of ordinary English that heed carries, from nothing, with heed alone: learns a
# vocabulary from books and a model from them, among which stand lists of words with stretches that
# come again, and measures the model's heads and its loss on books that it has not read.
#
#   scripts/train_english.sh BOOKS VALIDATION [OUT]       default: runs/english
#   scripts/install_model.sh english runs/english/last --dtype int8 --embedding
#                                                         makes it the one that heed carries
#
# BOOKS and VALIDATION are plain text, books parted by <|endoftext|>, such as stories whose copyright
# has ended; 40 MB of them are 11 million tokens. TITLE says in one line what they are. Some hours on
# one core.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
books=$1
validation=$2
out=${3:-runs/english}
title=${TITLE:-books of English stories whose copyright has ended}
positions=rotary  # or learned

# mixed SHARE FILE: the books with this share of characters in lists
mixed() {
  python3 scripts/english_data.py "$books" "$out-tokenizer/tokenizer.json" --share "$1" > "$2"
}

# train DIR TEXT OPTION…
train() {
  "$heed" train --config english --out "$1" --data "$2" --validation "$validation" \
    --set "positions=$positions" "${@:3}"
}

mkdir -p "$(dirname "$out")"
"$heed" tokenizer train --data "$books" --vocabulary-size 8192 --out "$out-tokenizer" --force

# Half of the first text are lists of short stretches, in which an induction head comes within some
# hundred steps; in the second they are rare.
mixed 0.5 "$out-lists.txt"
train "$out-first" "$out-lists.txt" --tokenizer "$out-tokenizer" \
  --set steps=1000 --set schedule=constant
mixed 0.05 "$out-text.txt"
train "$out" "$out-text.txt" --from "$out-first/last" --seed 2

# 6,600 steps of 4,096 tokens, which pass about twice over the books.
"$heed" reading --data "$books" --title "$title" --tokens 27033600 --passes 2 --out "$out/last"
"$heed" induction -m "$out/last"
"$heed" eval -m "$out/last" --text "$validation"
