#!/usr/bin/env python3
"""Draws the fraction of the machine's ceiling that heed reaches, from what `heed bench --json` printed.

    heed bench prompt --config gpt2,gpt2-medium -c 128,1024 --json > prompt.json
    heed bench decode --config gpt2 --dtype bf16 --json > decode.json
    scripts/performance_chart.py prompt.json decode.json > docs/pictures/performance.svg

One bar for each row that has an `of_peak`, in groups by suite, dtype and ceiling: a bar's label is
the model, its context and what distinguishes it from its neighbours; next to the bar is the speed.
"""
import html
import json
import sys

WIDTH, LEFT, RIGHT, BAR, GAP, HEAD, TOP = 860, 250, 200, 16, 6, 44, 62
PLOT = WIDTH - LEFT - RIGHT
TITLES = {"train": "Training", "prompt": "Processing a prompt", "decode": "Decoding",
          "attention": "Causal attention"}
PEAKS = {"f32_multiply_add": "f32 multiply-adds", "bf16_dot_product": "bf16 dot products",
         "bf16_tile_product": "bf16 tile products", "read": "memory reads"}
# Both colour schemes: the picture may lie on white or on black.
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.group { font-weight: 600 }
.quiet { fill: #57606a }
.paper { fill: #ffffff }
.line { stroke: #d0d7de }
.ceiling { stroke: #bc4c00; stroke-dasharray: 4 3 }
.bar { fill: #0969da }
.old { fill: #8250df }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .paper { fill: #0d1117 }
  .line { stroke: #3d444d }
  .ceiling { stroke: #f0883e }
  .bar { fill: #4493f8 }
  .old { fill: #ab7df8 }
}
"""


def short_count(number):
    """3 digits at most: 124 M, 1.56 B."""
    for limit, unit in ((1e9, " B"), (1e6, " M"), (1e3, " k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def rows_of(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows += [row for row in json.load(file)["rows"]
                     if row["of_peak"] is not None and row["suite"] in TITLES]
    if not rows:
        sys.exit("there is no row with an of_peak in these files")
    return rows


def group_of(row):
    """What the rows under one heading share."""
    title = "AdamW's update" if row["name"] == "update" else TITLES[row["suite"]]
    return title, row["dtype"], row.get("cache_type"), row["peak"], row["instruction_set"]


def heading(group):
    title, dtype, cache_type, peak, instruction_set = group
    cache = f", cache {cache_type}" if cache_type not in (None, "f32") else ""
    return f"{title} in {dtype}{cache}", f"of {PEAKS[peak]}, {instruction_set}"


def amount(row):
    """How much is read or written at once."""
    batch = row["batch"] or 1
    if row["name"] == "update":
        return ""
    if row["suite"] == "decode":
        sequences = f", {batch} sequences" if batch > 1 else ""
        return sequences + (f", after {row['context']:,}" if row["context"] else "")
    return f", {batch} × {row['context']:,}" if batch > 1 else f", {row['context']:,}"


def label(row):
    name = row["model"].rstrip("/").split("/")[-1]
    parameters = f" ({short_count(row['parameters'])})" if row["parameters"] else ""
    work = f" {row['name']}" if row["suite"] == "attention" else ""
    logits = ", all logits" if "all logits" in row["name"] else ""
    return f"{name}{parameters}{work}{amount(row)}{logits}"


def text(x, y, words, kind="", anchor="start"):
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{style}>{html.escape(words)}</text>'


def line(x, top, bottom, kind):
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'


def bar(row, y, scale):
    share = row["of_peak"]
    kind = "bar" if "AVX512" in row["instruction_set"] or "AMX" in row["instruction_set"] else "old"
    speed = f"{short_count(row['tokens_per_s'])} tok/s" if row.get("tokens_per_s") else ""
    return [text(LEFT - 8, y + BAR - 3, label(row), "", "end"),
            f'<rect class="{kind}" x="{LEFT}" y="{y}" height="{BAR}" rx="2" '
            f'width="{max(share * scale, 1):.1f}"/>',
            text(LEFT + PLOT + 44, y + BAR - 3, f"{share:.2f}", "", "end"),
            text(LEFT + PLOT + 58, y + BAR - 3, speed, "quiet")]


def draw(rows):
    groups = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    most = max(1.0, max(row["of_peak"] for row in rows))
    scale = PLOT / most
    y, marks = TOP, []
    for group, members in groups.items():
        title, ceiling = heading(group)
        marks += [text(16, y + 20, title, "group"), text(LEFT, y + 20, ceiling, "quiet")]
        y += HEAD - 12
        for row in members:
            marks += bar(row, y, scale)
            y += BAR + GAP
        y += 10
    lines = [line(LEFT + tenth * scale / 4, TOP, y - 8, "line") for tenth in range(4)]
    lines.append(line(LEFT + scale, TOP - 4, y - 8, "ceiling"))
    lines.append(text(LEFT + scale, TOP - 10, "the ceiling", "quiet", "middle"))
    name = "Fraction of the machine's ceiling that heed reaches"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" '
        f'role="img" aria-label="{html.escape(name)}">',
        f"<title>{html.escape(name)}</title><style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%" rx="8"/>',
        text(16, 30, name, "title"), *lines, *marks, "</svg>"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(draw(rows_of(sys.argv[1:])))
