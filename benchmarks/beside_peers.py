#!/usr/bin/env python3
"""Measures heed in turns with llama.cpp and PyTorch, GPT-2 124M with random weights, and draws the figure of the README.

    beside_peers.py measure HEED --llama 'node …/llama_cpp.mjs' --gguf FOLDER --torch 'python3 …/gpt2_in_pytorch.py' > peers.json
    beside_peers.py draw peers.json > docs/pictures/performance.svg
    beside_peers.py table peers.json

FOLDER holds gpt2-{f32,bf16,q8_0,q4_0}.gguf. Every ratio is the median over rounds of one run, heed and the rival in turns.
"""
import argparse
import html
import json
import subprocess
import sys

THREADS, ROUNDS = 2, 3
# suite, dtype, arguments, the rivals with what they are asked for
LLAMA = {"f32": "f32", "bf16": "bf16", "int8": "q8_0", "int4": "q4_0"}
WORK = ([("prompt", dtype, ["-c", "512"]) for dtype in LLAMA] + [("decode", dtype, ["-n", "64"]) for dtype in LLAMA]
        + [("train", dtype, ["-b", "4", "-c", "256", "-n", "1"]) for dtype in ("f32", "bf16")])
TITLES = {"prompt": "Reading a prompt of 512 tokens", "decode": "Writing 64 tokens", "train": "Training on 4 × 256 tokens"}


def measure(options):
    rows = []
    for suite, dtype, arguments in WORK:
        rivals = {}
        if suite != "train" and options.llama:
            count = arguments[-1]
            rivals["llama.cpp"] = f"{options.llama} {options.gguf}/gpt2-{LLAMA[dtype]}.gguf {suite} {count} {THREADS}"
        if suite != "decode" and dtype in ("f32", "bf16") and options.torch:
            batch, context = ("1", "512") if suite == "prompt" else ("4", "256")
            rivals["PyTorch"] = (f"{options.torch} {suite} --batch {batch} --context {context} --dtype {dtype} "
                                 f"--threads {THREADS}")
        for rival, command in rivals.items():
            done = subprocess.run([options.heed, "bench", suite, "--config", "gpt2", "--dtype", dtype, *arguments, "-r", str(ROUNDS),
                                   "-t", str(THREADS), "--against", command, "--json"],
                                  stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)["rows"][0]
            against = row["against"]
            rows.append({"suite": suite, "dtype": dtype, "rival": rival, "heed_tokens_per_s": row["tokens_per_s"],
                         "rival_tokens_per_s": against["tokens_per_s"], "times": against["times"],
                         "times_min": against["times_min"], "times_max": against["times_max"]})
            print(rows[-1], file=sys.stderr)
    json.dump(rows, sys.stdout, indent=1)


def rate(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def grouped(rows):
    """[(suite, [(dtype, {rival: row})])]"""
    suites = {}
    for row in rows:
        suites.setdefault(row["suite"], {}).setdefault(row["dtype"], {})[row["rival"]] = row
    return [(suite, list(dtypes.items())) for suite, dtypes in suites.items()]


def table(rows):
    print("| work | weights | heed, tok/s | llama.cpp, tok/s | times | PyTorch, tok/s | times |\n| --- | --- | --- | --- | --- | --- | --- |")
    for suite, dtypes in grouped(rows):
        for dtype, rivals in dtypes:
            heed = " / ".join(rate(row["heed_tokens_per_s"]) for row in rivals.values())
            cells = []
            for rival in ("llama.cpp", "PyTorch"):
                row = rivals.get(rival)
                cells += ([rate(row["rival_tokens_per_s"]), f"{row['times']:.1f} ({row['times_min']:.1f} to {row['times_max']:.1f})"]
                          if row else ["", ""])
            print(f"| {TITLES[suite].lower()} | {dtype} | {heed} | {' | '.join(cells)} |")


# Bars are shares of heed's speed at the same work: heed's are all of one length.
WIDTH, LEFT, PLOT, BAR = 860, 190, 470, 15
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f } .title { font-size: 16px; font-weight: 600 }
.group { font-weight: 600 } .small { fill: #57606a; font-size: 12px } .paper { fill: #fff }
.heed { fill: #0969da } .llama { fill: #8c959f } .torch { fill: #d4a72c }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #0d1117 } .small { fill: #8d96a0 }
  .heed { fill: #388bfd } .llama { fill: #6e7681 } .torch { fill: #bb8009 } }
"""


def draw(rows):
    y, parts = 30, []

    def text(x, height, words, style=""):
        parts.append(f'<text x="{x}" y="{height}" class="{style}">{html.escape(words)}</text>')

    def bar(share, style, words):
        nonlocal y
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(PLOT * share, 1.5):.1f}" height="{BAR - 3}" rx="2" class="{style}"/>')
        text(LEFT + PLOT * share + 8, y + 11, words, "small")
        y += BAR

    text(16, y, "GPT-2 124M on two cores: tokens a second, and how many times as fast heed is", "title")
    y += 14
    for suite, dtypes in grouped(rows):
        y += 22
        text(16, y, TITLES[suite], "group")
        y += 10
        for dtype, rivals in dtypes:
            text(LEFT - 50, y + 11, dtype)
            speeds = [row["heed_tokens_per_s"] for row in rivals.values()]
            bar(1, "heed", f"heed {' and '.join(rate(speed) for speed in speeds)}")
            for rival, row in rivals.items():
                bar(1 / row["times"], "llama" if rival == "llama.cpp" else "torch",
                    f"{rival} {rate(row['rival_tokens_per_s'])}: {row['times']:.1f} times")
            y += 6
    height = y + 14
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
          f"<title>heed beside llama.cpp and PyTorch</title><style>{STYLE}</style>"
          f'<rect class="paper" width="{WIDTH}" height="{height}"/>{"".join(parts)}</svg>')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("heed")
    measured.add_argument("--llama")
    measured.add_argument("--gguf")
    measured.add_argument("--torch")
    for name in ("draw", "table"):
        commands.add_parser(name).add_argument("file")
    options = parser.parse_args()
    if options.command == "measure":
        return measure(options)
    with open(options.file, encoding="utf-8") as file:
        rows = json.load(file)
    return draw(rows) if options.command == "draw" else table(rows)


if __name__ == "__main__":
    main()
