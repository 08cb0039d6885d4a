"""Quick measures of a model, with TransformerLens's names and arguments."""

import numpy as np

from .errors import InvalidArgument


def induction_loss(model, tokenizer=None, batch_size: int = 4, subseq_len: int = 384,
                   prepend_bos=None, device=None, seed: int = 0) -> float:
    """The mean loss over the second half of random tokens that are repeated, in nats. A model with
    induction heads is far below log V there; chance is log V or more.

    ``subseq_len``: tokens of a half; where two do not fit the context, as many as fit. Ids are drawn
    from all of the vocabulary with NumPy's generator of ``seed``. ``prepend_bos``: as in
    :meth:`heed.Model.to_tokens` [a token that begins texts, if there is one]. ``tokenizer`` and
    ``device`` are taken and not used: the vocabulary is the model's.
    """
    model._refuse_translator("the loss of repeated tokens")
    if int(batch_size) < 1 or int(subseq_len) < 2:
        raise InvalidArgument(f"batch_size is {batch_size} and subseq_len {subseq_len}, expected at "
                              "least 1 and 2")
    first = model._handle.beginning_token() if prepend_bos in (None, True) else None
    if prepend_bos and first is None:
        raise InvalidArgument(f"the tokenizer of '{model.name}' has no token that begins a text")
    begin = [] if first is None else [first]
    length = min(int(subseq_len), (model.cfg.n_ctx - len(begin)) // 2)
    half = np.random.default_rng(seed).integers(0, model.cfg.d_vocab, (int(batch_size), length))
    tokens = np.concatenate([np.broadcast_to(np.array(begin, np.int64), (len(half), len(begin))),
                             half, half], axis=1)
    losses = model.loss(tokens, per_token=True)
    return float(np.mean(losses[:, -length:], dtype=np.float64))
