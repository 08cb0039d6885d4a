#!/usr/bin/env python3
"""Trains SentencePiece models on English and German and writes what published.mjs makes tokenizer.json of.

Usage: train_models.py DATA OUT
  OUT/unigram.model, OUT/bpe.model, OUT/bytes.model   SentencePiece models (Unigram, BPE, with bytes)
  OUT/NAME.json   of each: {"pieces": [[text, score], ...], "charsmap": base64}
Needs the Debian package python3-sentencepiece, and protobuf.py of tests/support beside it.
"""

import base64
import gzip
import json
import pathlib
import sys

import sentencepiece

from protobuf import fields


def charsmap(model):
    normalizer = dict(fields(model))[3]
    return dict(fields(normalizer)).get(2, b"")


def export(stem):
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{stem}.model")
    pieces = [
        [processor.id_to_piece(i), processor.get_score(i)] for i in range(processor.get_piece_size())
    ]
    encoded = base64.b64encode(charsmap(pathlib.Path(f"{stem}.model").read_bytes())).decode()
    pathlib.Path(f"{stem}.json").write_text(json.dumps({"pieces": pieces, "charsmap": encoded}))


def main():
    data, out = map(pathlib.Path, sys.argv[1:])
    text = out / "text"
    with text.open("wb") as file:
        for language in ("en", "de"):
            file.write(gzip.decompress((data / f"multi30k/train.{language}.gz").read_bytes()))
    common = {"input": str(text), "num_threads": 1, "minloglevel": 2}
    t5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    for name in ("unigram", "bpe"):
        sentencepiece.SentencePieceTrainer.train(
            **common, **t5, model_type=name, model_prefix=str(out / name), vocab_size=4000
        )
    sentencepiece.SentencePieceTrainer.train(
        **common,
        model_type="unigram",
        model_prefix=str(out / "bytes"),
        vocab_size=1500,
        byte_fallback=True,
        user_defined_symbols=["<ctrl>", "@@"],
    )
    for name in ("unigram", "bpe", "bytes"):
        export(out / name)


main()
