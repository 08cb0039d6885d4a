#!/usr/bin/env python3
"""Makes small SentencePiece models and what SentencePiece itself makes of texts with them.

Usage: make_goldens.py DATA
  DATA  the directory that holds multi30k/train.en.gz and train.de.gz
Writes beside itself:
  unigram.model   Unigram with T5's special pieces and a few rules of normalisation
  bpe.model       BPE with bytes for characters that have no piece, and two user-defined pieces
  llama.model     the same as LLaMA has it: no space is taken away
  goldens.json    a list of {"model", "text", "ids", "decoded"}
Needs the Debian package python3-sentencepiece (0.1.97).
"""

import gzip
import io
import json
import os
import pathlib
import random
import sys
import tempfile

import sentencepiece

RULES = [("ﬁ", "fi"), ("…", "..."), ("\u00a0", " "), ("\u200b", ""), ("½", "1/2"), ("é", "é"), ("Ä", "Ä")]
TEXTS = [
    "",
    " ",
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "  two  spaces,\tand a tab \n",
    "Straße Größe Äpfel ﬁne … ½ caf\u0065\u0301 \u00a0 zero\u200bwidth",
    "注意力 is all you need",
    "注意 注意力 👩‍👩‍👧 \U00010348",
    "▁ is a space ▁▁ here",
    "</s> <s> <pad> <unk> <extra_id_0>",
    "<sep>@@<sep>",
    "it's 3.14, isn't it?",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "UPPER lower MiXeD 0123456789",
]


def train(lines, **options):
    """The bytes of a model; no path is in it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, num_threads=1, minloglevel=2, **options
    )
    return model.getvalue()


def train_all(lines):
    rules = pathlib.Path("rules.tsv")
    with rules.open("w", encoding="utf-8") as file:
        for source, target in RULES:
            points = [" ".join(f"{ord(c):X}" for c in part) for part in (source, target)]
            file.write("\t".join(points) + "\n")
    unigram = train(
        lines,
        model_type="unigram",
        vocab_size=600,
        normalization_rule_tsv=str(rules),
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
    )
    bpe = train(
        lines,
        model_type="bpe",
        vocab_size=800,
        normalization_rule_name="identity",
        byte_fallback=True,
        user_defined_symbols=["<sep>", "@@"],
    )
    llama = train(
        lines,
        model_type="bpe",
        vocab_size=700,
        normalization_rule_name="identity",
        byte_fallback=True,
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        split_digits=True,
        user_defined_symbols=["<sep>", "@@", "▁▁▁"],
    )
    return {"unigram": unigram, "bpe": bpe, "llama": llama}


def random_text(generator):
    alphabet = ["a", "e", "n", "der", "the", " ", " ", "  ", "ß", "é", "e\u0301", "ﬁ", "½", "注", "\u200b", "▁", "<sep>", ".", "👩"]
    return "".join(generator.choice(alphabet) for _ in range(generator.randrange(1, 30)))


def main():
    here = pathlib.Path(__file__).resolve().parent
    data = pathlib.Path(sys.argv[1]).resolve() / "multi30k"
    generator = random.Random(17)
    texts = TEXTS + [random_text(generator) for _ in range(120)]
    records = []
    lines = []
    for language in ("en", "de"):
        lines += gzip.decompress((data / f"train.{language}.gz").read_bytes()).decode().splitlines()[:4000]
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        models = train_all(lines)
        os.chdir(here)
    for model, content in models.items():
        (here / f"{model}.model").write_bytes(content)
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        for text in texts:
            ids = processor.encode(text)
            # Special pieces are written or left out by heed; its decoder is compared without them.
            shown = [id for id in ids if not processor.is_unknown(id)]
            records.append({"model": model, "text": text, "ids": ids, "decoded": processor.decode(shown)})
    with (here / "goldens.json").open("w", encoding="utf-8") as file:
        file.write("[\n")
        file.write(",\n".join(json.dumps(record, ensure_ascii=False) for record in records))
        file.write("\n]\n")


main()
