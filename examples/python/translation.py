"""Translation: the built-in translator, its hypotheses, and what each word of the target reads in
the source."""

import heed

translator = heed.load("translator")
source = "The small dog sleeps in the garden."
found = translator.translate(source, n_best=3, alignment=True)
for hypothesis in found.hypotheses:
    print(f"{hypothesis.score:8.3f}  {hypothesis.text}")

pieces = translator.to_str_tokens(source=found.source)
written = translator.to_str_tokens(target=found.hypotheses[0].tokens)
attention = found.cross_attention  # (L, H, T, S)
mean = attention[-1].mean(0)
for row, piece in zip(mean, written):
    key = int(row.argmax())
    print(f"{piece!r:14} reads {pieces[key]!r:14} with {row[key]:.0%} "
          f"(uniform: {1 / len(pieces):.0%})")
