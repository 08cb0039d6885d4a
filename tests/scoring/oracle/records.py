"""Scores of sacreBLEU, as a JSON document that the tests of src/scoring compare heed with.

    records.py OUT [--sentences N] [--samples N] [--seed N] [FILE...]

Translations are made by damaging references: sentences of a small vocabulary and, one corpus for each
FILE (plain or .gz, one sentence a line), the sentences of that file. Without FILEs the document is the
committed golden, tests/golden/scoring/scores.json:

    records.py tests/golden/scoring/scores.json --sentences 120 --samples 200 --seed 1
"""

import argparse
import gzip
import json
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

WORDS = """the a der die das ein eine Hund dog Häuser houses läuft runs schnell quickly über over
Straße street groß large ÄRGER trouble Ωmega ΟΔΟΣ ΣΟΦΟΣ naïve İstanbul I ı ǅ ß ẞ ﬁne 北京 是 首都 東京
привет мир co-operate e-mail don't rock'n'roll U.S. U.S.A. Dr. z.B. etc. A.B. x_y foo@bar.org C++ C# 50%
1,000 3.14 1,234,567.89 2026 .5 5. ,7 1-2 3-fold 10-15 -5 −5 2² ½ Ⅷ ٣٤ 12. 12, $5 €7 £9 5€ km/h and/or
&quot;quoted&quot; &amp; &lt;b&gt; &amp;lt; &apos; <skipped> <b>bold</b> [sic] {x} (so) „ja“ “yes” ‘no’
今天天气很好。 我们（三个人）去了3.5公里，花了１２元！ “引号”—— 𠀀𪛖 ㈱ ☃ →← ≤∞ カタｶﾅ ㄅㄆ ⼀⺀ 10。5 ，a,。b.
«oui» ¿qué? ¡no! … – — - -- ' " ` ^ ~ | \\ / * + = # % @ ! ? ... .. ,, ., ?! !!! 🙂 👩‍👩‍👧 e\u0301 \u0301
a\u200bb soft\u00adhyphen non\u00a0breaking thin\u2009space wide\u3000space line\u2028end""".split(" ")
WORDS = [word for line in WORDS for word in line.split("\n")]
EDGES = ["", "。", " 。a", ".。", "5.", "。.5", "你.好", "你,5", "\u2000x\u2001y", "\u2a6dz\u2a6e", "\u9fbb\u9fbc", "\ufa2ea\ufa6b", " ", ".", ",", "..", "5.", "5.5", ".5.", "a.b", "a,5", "5,a", "x.\u00a0", "5.\u00a0", "5. ", "\u00a0", "1.-2",
         "5-", "-5-", "a-5-b", "&amp;quot;", "&quot", "Σ", "ΑΣ", "ΑΣ.", "ΑΣ'Α", "Α'Σ", "ΣΑΣ ΣΣ", "İİ",
         "5€.", "€.5", "¿¿5??", "a\tb", "a\x1cb", "a\x85b", " lead", "trail ", "two  spaces", "'tis", "it's",
         "((a))", "a)b(c", "{|}~", "[\\]^_`", "!\"#$%&'()*+,-./", ":;<=>?@"]
TOKENIZERS = ["13a", "none", "char", "intl", "zh"]


def made_sentence(source):
    words = [source.choice(WORDS) for _ in range(source.choice([1, 2, 3, 5, 8, 13, 21]))]
    return " ".join(words) + source.choice(["", ".", " .", "!", "?", ", 5.", "…"])


def damaged(sentence, source, rate):
    """Words dropped, repeated, replaced, swapped and capitalised: what a translator gets wrong."""
    words = []
    for word in sentence.split(" "):
        chance = source.random() / rate
        if chance < 0.3:
            continue
        words.append(word)
        if chance < 0.4:
            words.append(word)
        elif chance < 0.6:
            words[-1] = source.choice(WORDS)
        elif chance < 0.7:
            words[-1] = word.swapcase()
        elif chance < 1 and len(words) > 1:
            words[-2:] = words[:-3:-1]
    return " ".join(words)


def score_of(result):
    record = {"score": result.score}
    if hasattr(result, "bp"):
        record |= {"precisions": result.precisions, "brevity_penalty": result.bp,
                   "hypothesis_length": result.sys_len, "reference_length": result.ref_len,
                   "correct": result.counts, "total": result.totals}
    return record


def without_version(signature):
    return str(signature).rsplit("|version:", 1)[0]


def paired(metric, systems, references, samples):
    named = [(f"system {i}", system) for i, system in enumerate(systems)]
    test = PairedTest(named, {"metric": metric}, references, test_type="bs", n_samples=samples)
    signatures, scores = test()
    (name,) = signatures
    return {"samples": samples, "signature": without_version(signatures[name].format()),
            "systems": [{"mean": result.mean, "half_width": result.ci, "p_value": result.p_value}
                        for result in scores[name]]}


def metric_record(kind, options, systems, references, samples):
    made = (BLEU if kind == "bleu" else CHRF)(**options)
    record = {"kind": kind, "options": options,
              "systems": [score_of(made.corpus_score(system, references)) for system in systems]}
    record["name"] = made.corpus_score(systems[0], references).name
    record["signature"] = without_version(made.get_signature().format())
    record["sentences"] = [made.sentence_score(system, list(texts)).score
                           for system, *texts in zip(systems[0], *references)]
    if samples:
        record["bootstrap"] = paired(made, systems, references, samples)
    return record


def corpus_record(name, first_references, source, samples):
    sets = [first_references, [damaged(text, source, 0.15) for text in first_references]]
    systems = [[damaged(text, source, rate) for text in first_references] for rate in (0.3, 0.31, 0.4)]
    systems[1] = [own if source.random() < 0.3 else other for own, other in zip(systems[1], systems[0])]
    systems[0][0] = ""
    metrics = []
    for count in (1, 2):
        references = sets[:count]
        resampled = samples if count == 1 else 0
        plans = [("bleu", {"tokenize": "13a"}, samples), ("chrf", {}, resampled),
                 ("chrf", {"word_order": 2}, resampled)]
        plans += [("bleu", {"tokenize": tokenizer, "lowercase": True}, 0) for tokenizer in TOKENIZERS]
        plans += [("bleu", {"tokenize": "13a", "effective_order": True}, 0),
                  ("chrf", {"lowercase": True, "word_order": 1, "beta": 3}, 0)]
        for kind, options, wanted in plans:
            record = metric_record(kind, options, systems, references, wanted)
            metrics.append({"references": count, **record})
    return {"name": name, "references": sets, "systems": systems, "metrics": metrics}


def tokenized(text):
    record = {"text": text, "lower": text.lower()}
    for tokenizer in TOKENIZERS:
        record[tokenizer] = BLEU(tokenize=tokenizer)._preprocess_segment(text).split()
    return record


def lines_of(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip() for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    source = random.Random(options.seed)
    made = [made_sentence(source) for _ in range(options.sentences)]
    texts = EDGES + made
    document = {
        "sacrebleu": sacrebleu.__version__,
        "tokenized": [tokenized(text) for text in texts],
        "corpora": [corpus_record("made", made, source, options.samples),
                    corpus_record("short", ["a b", "c", "d e f"], source, 0)],
    }
    for path in options.files:
        document["tokenized"] += [tokenized(text) for text in lines_of(path)]
        document["corpora"].append(corpus_record(path, lines_of(path), source, options.samples))
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
