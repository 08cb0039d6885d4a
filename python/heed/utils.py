"""Small helpers, with TransformerLens's names and arguments."""

from typing import Sequence, Union

import numpy as np

from .errors import InvalidArgument
from .factored import composition_scores
from .names import get_act_name

__all__ = ["composition_scores", "get_act_name", "get_corner", "get_device", "lm_accuracy",
           "lm_cross_entropy_loss", "remove_batch_dim", "test_prompt", "to_numpy"]


def get_device() -> str:
    """Where arrays of Python are: "cpu"."""
    return "cpu"


def to_numpy(values) -> np.ndarray:
    """An array of arrays, lists, numbers and tensors."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def remove_batch_dim(values):
    """Without a first dimension of 1."""
    return values[0] if values.shape[0] == 1 else values


def get_corner(values, n: int = 3):
    """The first n of every dimension."""
    if hasattr(values, "get_corner"):
        return values.get_corner(n)
    return values[tuple(slice(n) for _ in range(np.ndim(values)))]


def _log_softmax(logits):
    logits = np.float64(logits)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def lm_cross_entropy_loss(logits, tokens, per_token: bool = False):
    """Of the token after each position, from logits (B, T, V) and tokens (B, T), in nats: the mean,
    or (B, T − 1)."""
    log_probs = _log_softmax(logits)
    losses = -np.take_along_axis(log_probs[:, :-1], np.asarray(tokens)[:, 1:, None], 2)[..., 0]
    return losses if per_token else float(losses.mean())


def lm_accuracy(logits, tokens, per_token: bool = False):
    """Whether the most likely token after each position is the one that follows: the share, or
    (B, T − 1)."""
    right = np.asarray(logits)[:, :-1].argmax(-1) == np.asarray(tokens)[:, 1:]
    return right if per_token else float(right.mean())


def test_prompt(prompt: str, answer: Union[str, Sequence[str]], model,
                prepend_space_to_answer: bool = True, print_details: bool = True,
                prepend_bos=None, top_k: int = 10) -> None:
    """Prints how likely an answer is after a prompt, token by token, its rank, and the likeliest
    tokens beside it. Several answers are compared by their first tokens."""
    if top_k < 1:
        raise InvalidArgument(f"top_k is {top_k}, expected at least 1")
    answers = [answer] if isinstance(answer, str) else list(answer)
    if prepend_space_to_answer:
        answers = [one if one.startswith(" ") else " " + one for one in answers]
    before = model.to_tokens(prompt, prepend_bos)[0]
    rows = [np.array(model._handle.part_tokens(one), np.int32) for one in answers]
    ends = []
    for row in rows:
        logits = model(np.concatenate([before, row])[None])[0, len(before) - 1:]
        ends.append(np.exp(_log_softmax(logits)))
    if print_details:
        print("Tokenized prompt:", model.to_str_tokens(prompt, prepend_bos))
        for row in rows:
            print("Tokenized answer:", model.to_str_tokens(row))
    for one, row, probabilities in zip(answers, rows, ends):
        for step, token in enumerate(row if len(rows) == 1 else row[:1]):
            order = np.argsort(-probabilities[step], kind="stable")
            rank = int(np.flatnonzero(order == token)[0])
            text = model.to_single_str_token(token)
            print(f"Rank: {rank:<8} Probability: {100 * probabilities[step][token]:5.2f} %  "
                  f"Token: |{text}|")
            if print_details:
                for place, other in enumerate(order[:top_k]):
                    print(f"Top {place}: {100 * probabilities[step][other]:5.2f} %  "
                          f"|{model.to_single_str_token(other)}|")
