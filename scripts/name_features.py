#!/usr/bin/env python3
"""Writes what the features of the starter's transcoders answer to, FOLDER/names.json.

    PYTHONPATH=build/release/python python3 scripts/name_features.py [FOLDER]    models/starter-transcoders

Of each feature the token at the peak of each of its strongest contexts, one of a window, in stories of the
microworld that neither the starter nor its transcoders were trained on, the strongest first; and the
strongest context, up to its peak:

    {"text": what was read, "tokens": how many, "layers": [[[[token, …], [token, …]], …], …]}
"""

import json
import pathlib
import sys

import heed

SEED, STORIES, TOKENS, CONTEXTS, LENGTH = 2, 400, 1 << 16, 8, 6


def stories():
    return "".join(heed.microworld.story(SEED, i)["text"] + "\n" for i in range(STORIES))


def name_of(feature):
    contexts = [context for context in feature.contexts if context.activation > 0]
    peaks = [int(context.tokens[context.peak]) for context in contexts]
    first = contexts[0] if contexts else None
    shown = first.tokens[max(first.peak - LENGTH + 1, 0):first.peak + 1] if first else []
    return [peaks, [int(token) for token in shown]]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "models/starter-transcoders")
    model, text, layers = heed.load("starter"), stories(), []
    for sae in heed.sae.load_all(str(folder)):
        found = heed.sae.features(model, sae, text, range(sae.cfg.d_sae), top=CONTEXTS, tokens=TOKENS)
        layers.append([name_of(feature) for feature in found])
        tokens = found.tokens
    document = {"text": f"stories of the microworld, seed {SEED}", "tokens": tokens, "layers": layers}
    (folder / "names.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
