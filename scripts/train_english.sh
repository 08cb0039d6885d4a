#!/usr/bin/env bash
# Trains the model of ordinary English that heed carries, from nothing, with heed alone: learns a
# vocabulary from books, mixes lists of words in which stretches come again into them, trains a model,
# and measures its heads.
#
#   scripts/train_english.sh BOOKS VALIDATION [OUT]       default: runs/english
#   scripts/install_model.sh english runs/english/last --dtype int8 --embedding
#                                                         makes it the one that heed carries
#
# BOOKS and VALIDATION are plain text, books parted by <|endoftext|>, such as stories whose copyright
# has ended; 40 MB of them are 11 million tokens.
set -euo pipefail
cd "$(dirname "$0")/.."
heed=${HEED:-build/release/bin/heed}
books=$1
validation=$2
out=${3:-runs/english}

mkdir -p "$(dirname "$out")"
"$heed" tokenizer train --data "$books" --vocabulary-size 8192 --out "$out-tokenizer" --force
python3 scripts/english_data.py "$books" "$out-tokenizer/tokenizer.json" > "$out-text.txt"
"$heed" train --config english --data "$out-text.txt" --validation "$validation" \
  --tokenizer "$out-tokenizer" --out "$out"

# A previous-token head, an induction head, and the loss on books that it has not read.
"$heed" induction -m "$out/last"
"$heed" eval -m "$out/last" --text "$validation"
