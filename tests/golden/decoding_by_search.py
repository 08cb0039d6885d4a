"""Greedy decoding, beam search and exhaustive search, written for comparison with heed.

`next_log_probabilities(tokens)` is a function from the tokens generated so far to the log-probabilities
(V) of the next one. A hypothesis is the tokens generated, its `end` included if it has one. Its score is
the sum of their log-probabilities divided by their number to the power of the length penalty, as in
Hugging Face's `generate`: the end counts, the token that decoding starts from does not.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    tokens: tuple
    log_probability: float
    score: float


def hypothesis(tokens, log_probability, penalty):
    return Hypothesis(tuple(tokens), log_probability, log_probability / len(tokens) ** penalty)


def greedy(next_log_probabilities, end, longest):
    tokens = []
    while len(tokens) < longest and (not tokens or tokens[-1] != end):
        tokens.append(int(next_log_probabilities(tokens).argmax()))
    return tokens


def exhaustive(next_log_probabilities, end, longest, penalty):
    """Every hypothesis: those that end, and those of the longest length that do not; the best first."""
    finished, unfinished = [], [((), 0.0)]
    for length in range(1, longest + 1):
        continued = []
        for tokens, log_probability in unfinished:
            for token, added in enumerate(next_log_probabilities(list(tokens)).tolist()):
                longer = (tokens + (token,), log_probability + added)
                (finished if token == end or length == longest else continued).append(longer)
        unfinished = continued
    ranked = [hypothesis(*found, penalty) for found in finished]
    return sorted(ranked, key=lambda found: -found.score)


def beam(next_log_probabilities, end, longest, penalty, beams, stops_early=True):
    """The best `beams` hypotheses of a beam search that takes twice as many candidates a step: those
    that end are kept if they are among the first `beams`, the best others go on. With `stops_early` it
    ends as soon as `beams` have ended and none that goes on is now better than the worst of them."""
    running, ended = [((), 0.0)], []
    for length in range(1, longest + 1):
        candidates = []
        for tokens, log_probability in running:
            for token, added in enumerate(next_log_probabilities(list(tokens)).tolist()):
                candidates.append((tokens + (token,), log_probability + added))
        candidates.sort(key=lambda candidate: -candidate[1])
        candidates = candidates[:2 * beams]
        running = []
        for rank, candidate in enumerate(candidates):
            if candidate[0][-1] != end:
                if len(running) < beams:
                    running.append(candidate)
            elif rank < beams:
                ended.append(hypothesis(*candidate, penalty))
        ended = sorted(ended, key=lambda found: -found.score)[:beams]
        best = candidates[0][1] / length ** penalty
        if stops_early and len(ended) == beams and ended[-1].score >= best:
            return ended
    ended += [hypothesis(*candidate, penalty) for candidate in running]
    return sorted(ended, key=lambda found: -found.score)[:beams]
