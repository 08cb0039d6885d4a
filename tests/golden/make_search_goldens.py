#!/usr/bin/python3
"""Writes pairs/marian_beams, bart_beams and t5_beams: toys with six tokens and one layer a stack, and
what searches find with them.

    /usr/bin/python3 tests/golden/make_search_goldens.py

needs PyTorch and numpy, and writes the same bytes again on the same machine. The models are trained for
a moment to say the source backwards, so that their outputs end. Each directory has config.json,
model.safetensors and

    decoding.json    `beams` and `longest`, and for each of a few `sources` the `greedy` output and, for
                     each length penalty, the four best hypotheses of a `beam` search with four beams and
                     of an `exhaustive` one over all outputs of at most five tokens; see
                     decoding_by_search.py

The sources are such that all rules of stopping agree, that neither padding nor an output without an end
is among the best, and that scores differ by more than rounding.
"""

import json
import sys

import torch

from decoding_by_search import beam, exhaustive, greedy
from make_pair_goldens import FOLDER, randomized, write_weights

BEAMS, LONGEST, PENALTIES, SOURCES = 4, 5, (1.0, 0.6), 3
TASK_STEPS, TASK_BATCH, CANDIDATES = 100, 8, 30


class Next:
    """Log-probabilities of the next token of a source's output."""

    def __init__(self, config, model, source):
        self.start, self.model, self.known = config["decoder_start_token_id"], model, {}
        with torch.no_grad():
            self.memory = model.encode(torch.tensor(source))

    def __call__(self, tokens):
        key = tuple(tokens)
        if key not in self.known:
            with torch.no_grad():
                logits = self.model.decode(self.memory, torch.tensor([self.start, *tokens]))[-1]
            self.known[key] = torch.log_softmax(logits, dim=-1)
        return self.known[key]


def listed(hypotheses):
    return [{"tokens": list(found.tokens), "log_probability": found.log_probability,
             "score": found.score} for found in hypotheses]


def decoded(config, model, source):
    """The outputs of a source, or None where they depend on what decoders settle differently."""
    end, pad = config["eos_token_id"], config["pad_token_id"]
    following = Next(config, model, source)
    searches = []
    for penalty in PENALTIES:
        ranked = exhaustive(following, end, LONGEST, penalty)
        found = beam(following, end, LONGEST, penalty, BEAMS)
        patient = beam(following, end, LONGEST, penalty, BEAMS, stops_early=False)
        best = ranked[:BEAMS + 1]
        gaps = [a.score - b.score for a, b in zip(best, best[1:])]
        gaps += [a.score - b.score for a, b in zip(found, found[1:])]
        if found != patient or found[0] != ranked[0] or min(gaps) < 2e-3:
            return None
        if any(pad in h.tokens or h.tokens[-1] != end for h in best + found):
            return None
        searches.append({"length_penalty": penalty, "beam": listed(found),
                         "exhaustive": listed(ranked[:BEAMS])})
    return {"source": source, "greedy": greedy(following, end, LONGEST), "searches": searches}


def interest(result):
    """How much of decoding a source shows: the best output is not the greedy one, penalties change the
    order, beams miss what is better."""
    first, second = result["searches"]
    tokens = lambda hypotheses: [h["tokens"] for h in hypotheses]
    return ((result["greedy"] != first["beam"][0]["tokens"]) + (tokens(first["beam"]) != tokens(second["beam"]))
            + (tokens(first["beam"]) != tokens(first["exhaustive"])) + (len(first["beam"][0]["tokens"]) > 2))


class Task:
    """Sources of up to five words and targets of up to four: the source backwards, cut anywhere, some
    words replaced by others. A model that has learned a little of it ends its outputs."""

    def __init__(self, config):
        special = {config["pad_token_id"], config["eos_token_id"], config.get("bos_token_id")}
        self.end = config["eos_token_id"]
        self.words = [token for token in range(config["vocab_size"]) if token not in special]
        self.generator = torch.Generator().manual_seed(25)

    def below(self, bound):
        return int(torch.randint(bound, (1,), generator=self.generator))

    def source(self):
        return [self.words[self.below(len(self.words))] for _ in range(2 + self.below(4))] + [self.end]

    def pair(self):
        source = self.source()
        backwards = source[-2::-1][:1 + self.below(4)]
        said = [word if self.below(4) else self.words[self.below(len(self.words))] for word in backwards]
        return source, said + [self.end]


def learn(config, model, task):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(TASK_STEPS):
        optimizer.zero_grad()
        for _ in range(TASK_BATCH):
            source, target = (torch.tensor(tokens) for tokens in task.pair())
            read = torch.cat([torch.tensor([config["decoder_start_token_id"]]), target[:-1]])
            logits = model.decode(model.encode(source), read)
            (torch.nn.functional.cross_entropy(logits, target) / TASK_BATCH).backward()
        optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.float())


def decoding(name, config, model, task):
    results = []
    for _ in range(CANDIDATES):
        source = task.source()
        result = decoded(config, model, source)
        if result and all(result["source"] != other["source"] for other in results):
            results.append(result)
    results.sort(key=lambda result: -interest(result))
    if len(results) < SOURCES:
        sys.exit(f"{name}: {len(results)} sources are decoded alike by all searches")
    print(f"{name}: {len(results)} of {CANDIDATES} sources, interest {[interest(r) for r in results[:SOURCES]]}")
    return {"beams": BEAMS, "longest": LONGEST, "sources": results[:SOURCES]}


def write_decoding(name, config, model, task):
    text = json.dumps(decoding(name, config, model, task), indent=1)
    (FOLDER / name / "decoding.json").write_text(text + "\n")


def main():
    torch.set_num_threads(1)  # sums do not depend on the number of processors
    for path in sorted(FOLDER.glob("*_beams/config.json")):
        name, config = path.parent.name, json.loads(path.read_text())
        model, task = randomized(config), Task(config)
        learn(config, model, task)
        write_weights(name, config, model)
        write_decoding(name, config, model, task)


if __name__ == "__main__":
    main()
