#!/usr/bin/env python3
"""Compares the greedy text of the embedded models between two builds of heed, such as this machine's
and one that runs under emulation.

  scripts/same_greedy_text.py build/release/bin/heed qemu-aarch64 -L build/aarch64-root build/aarch64/bin/heed

Rounding differs between instruction sets, so logits do too. In f32 texts must be the same. In int8 and
int4, where activations are rounded to integers, texts may part at a tie: both builds then rank the two
tokens first, no further apart than the builds' own logits allow. (The microworld has such
choices: dog and cow are as likely.)
"""
import json
import subprocess
import sys

PROMPTS = ["Once upon a time", "The cat didn't cross", "Harry, a wizard,", "In the garden of the queen"]
SENTENCES = ["The lamp is new because it is small.", "The crane lifts the car."]
# The most by which one token's logits may differ between the builds. Rounding activations to integers, which
# a build may do with prompts or not, moves logits of the starter by up to 0.07.
MOST_DIFFERENCE = 0.1


def output(build, *arguments):
    return subprocess.run([*build, *arguments], check=True, capture_output=True, text=True).stdout


def parted_at_a_tie(builds, tokens, dtype):
    """Whether both builds hold the tokens at which `tokens` part for nearly equal; says how nearly."""
    at = next(i for i, pair in enumerate(zip(*tokens)) if pair[0] != pair[1])
    prefix = ",".join(map(str, tokens[0][:at]))
    logits = [json.loads(output(build, "predict", "--tokens", prefix, "--dtype", dtype, "--json", "--full"))["logits"]
              for build in builds]
    difference = max(abs(one - other) for one, other in zip(*logits))
    both = {tokens[0][at], tokens[1][at]}
    firsts = [set(sorted(range(len(each)), key=each.__getitem__)[-2:]) for each in logits]
    gap = max(abs(each[tokens[0][at]] - each[tokens[1][at]]) for each in logits)
    print(f"  part at token {at}, at logits {gap:.5f} apart; of each token, the builds' logits are up to"
          f" {difference:.5f} apart")
    return all(first == both for first in firsts) and gap <= 2 * difference and difference <= MOST_DIFFERENCE


def main():
    if len(sys.argv) < 3:
        return __doc__
    builds = [sys.argv[1:2], sys.argv[2:]]
    different = 0
    for prompt in PROMPTS:
        for dtype in ["f32", "int8", "int4"]:
            options = ["generate", "--greedy", "--max-tokens", "60", "--dtype", dtype, "--prompt", prompt, "--json"]
            results = [json.loads(output(build, *options)) for build in builds]
            tokens = [[token["id"] for token in result["prompt_tokens"] + result["tokens"]] for result in results]
            is_same = tokens[0] == tokens[1]
            print(f"{'same' if is_same else 'different'}: {dtype}, {prompt!r} … {results[0]['text'][-40:]!r}", flush=True)
            if not is_same and (dtype == "f32" or not parted_at_a_tie(builds, tokens, dtype)):
                different += 1
    for sentence in SENTENCES:
        translations = [output(build, "translate", sentence) for build in builds]
        is_same = translations[0] == translations[1]
        print(f"{'same' if is_same else 'different'}: {sentence!r}, {translations[0].strip()!r}")
        different += not is_same
    return f"{different} texts differ" if different else 0


if __name__ == "__main__":
    sys.exit(main())
