#!/usr/bin/env python3
"""Measures which ranking finds neurons that the next token rests on.

    scripts/measure_neurons.py [build/release/bin/heed]

Beginnings of stories of the microworld that were held out from training (seed 77), in the starter.
Of its last block, the neuron with the largest direct effect on the likeliest token's logit, and the
one with the largest on its log-probability, are switched off at the last position; printed are
medians of what they take of its probability, in percentage points. The control is a neuron drawn at
random.
"""
import json
import random
import statistics
import subprocess
import sys

from explorer import ask, explorer

TEXTS, SEED = 60, 77


def main(heed):
    stories = json.loads(subprocess.check_output(
        [heed, "microworld", "-n", str(TEXTS), "--seed", str(SEED), "--json"]))["stories"]
    draw = random.Random(SEED)
    texts = [cut(story["text"], draw) for story in stories]
    with explorer(heed) as address:
        taken = [measure(address, text, draw) for text in texts]
    for name, column in zip(("by the logit", "by the log-probability", "at random"), zip(*taken)):
        alone = sum(points >= 0.5 for points in column)
        print(f"{name}: {statistics.median(column):.3f} points (median of {TEXTS}); "
              f"at least half a point in {alone}")


def cut(text, draw):
    """A beginning of one to 60 words."""
    words = text.split(" ")
    return " ".join(words[:draw.randint(2, min(60, len(words)))])


def measure(address, text, draw):
    trace = ask(address, "/api/traces", {"text": text})
    at = f"/api/traces/{trace['id']}"
    layer = trace["layers"] - 1
    effects = ask(address, f"{at}/neurons/effects?layer={layer}&position=-1")
    token = effects["token"]["id"]
    neurons = trace["dimensions"]["feed_forward"]
    parts = ask(address, f"{at}/attribution?token={token}&by=neuron&top={neurons * (layer + 1)}"
                "&position=-1")["parts"]
    of_block = [part for part in parts if part["name"].startswith(f"L{layer}N")]
    by_logit = int(max(of_block, key=lambda part: part["value"])["name"].split("N")[1])

    def taken_by(neuron):
        shown = ask(address, f"{at}/neurons/effects?layer={layer}&position=-1&neuron={neuron}")
        without = next(one["without"] for one in shown["neurons"] if one["neuron"] == neuron)
        return 100 * (shown["probability"] - without)

    return (taken_by(by_logit), taken_by(effects["neurons"][0]["neuron"]),
            taken_by(draw.randrange(neurons)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/heed")
