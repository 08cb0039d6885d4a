"""Why a model predicts what it does: lenses, attributions, heads.

Sources: nostalgebraist 2020 (logit lens); Elhage et al. 2021 and Nanda and Bloom 2022 (direct logit
attribution); Sundararajan, Taly and Yan 2017 (integrated gradients); Olsson et al. 2022
(induction heads).
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _heed, _inputs
from .errors import InvalidArgument
from .pictures import AttentionPicture, LensTable, NextWords, Tokens, framed, grid_picture

Token = Union[str, int]


def _id(model, token: Token) -> int:
    return model.to_single_token(token) if isinstance(token, str) else int(token)


def _tokens(model, text):
    return model._one(model._tokens(text))


def _texts(model, text):
    """The ids of each of several texts, or None of one."""
    if text is None or model.is_translator:
        return None
    rows = model._tokens(text)
    return list(rows) if len(rows) > 1 else None


def lens(model, text=None, top: int = 5, *, source=None, target=None
         ) -> Any:
    """The logit lens: what the stream before every layer would predict, (L + 1, T, top); of a
    translator, the decoder's over the target. Of several texts, a list."""
    texts = _texts(model, text)
    if texts is not None:
        return [lens(model, one, top) for one in texts]
    read = model._read_one(text, source, target)
    tokens, probabilities, entropies, divergences = _heed.logit_lens(model._hooked, read, top)
    ids = sorted({int(token) for token in tokens.reshape(-1)})
    return LensTable(tokens, probabilities, entropies, divergences,
                     dict(zip(ids, model._pieces(_inputs.token_array(ids)))),
                     model._pieces(read[-1]))


def next_words(model, text, top: int = 10) -> Any:
    """The likeliest next tokens, as (id, text, logit, probability). Of several texts, a list."""
    texts = _texts(model, text)
    if texts is not None:
        return [next_words(model, one, top) for one in texts]
    rows = _heed.Model.predict(model._hooked, _tokens(model, text), top)
    return NextWords([(token, piece.decode("utf-8", "replace"), logit, probability)
                      for token, piece, logit, probability in rows])


class NearestWords(NamedTuple):
    """Words (id, text, cosine) whose embeddings are nearest to a vector, as far as they are nearer
    than chance; ``best`` is the nearest of all, ``chance`` the largest cosine of any word with the
    vector's numbers in any of 39 random orders."""

    words: List[Tuple[int, str, float]]
    best: Tuple[int, str, float]
    chance: float


def nearest_words(model, text, position: int = -1, top: int = 6) -> List[NearestWords]:
    """The words that a position's vector is nearest to, less the mean of all embeddings: of its
    embedding, then of the stream before each block and after the last one (L + 2)."""
    def named(word: int, cosine: float):
        return word, model._pieces(_inputs.token_array([word]))[0], cosine

    return [NearestWords([named(*word) for word in words], named(best, cosine), chance)
            for best, cosine, chance, words
            in _heed.nearest_words(model._hooked, _tokens(model, text), position, top)]


class Attribution(NamedTuple):
    """Parts of a logit, or of a difference: ``values`` (parts) sum to it. Of several texts they are
    means, with ``standard_errors``."""

    names: List[str]
    values: np.ndarray
    standard_errors: Optional[np.ndarray] = None

    def largest(self, count: int = 10):
        order = np.argsort(-np.abs(self.values))[:count]
        return [(self.names[i], float(self.values[i])) for i in order]

    def _repr_html_(self):
        order = np.argsort(-np.abs(self.values))[:30]
        return framed(grid_picture(self.values[order][:, None], [self.names[i] for i in order],
                                   ["logit"], "The largest contributions", digits=3))


class TokenAttribution(Tokens):
    """The tokens of a text with what each adds to a logit: ``values``, from ``baseline`` to
    ``logit`` but for ``completeness_error``."""

    def __init__(self, pieces, ids, values, logit: float, baseline: float,
                 completeness_error: float):
        super().__init__(pieces, ids, values,
                         f"Integrated gradients: logit {logit:.4g}, baseline {baseline:.4g}, "
                         f"completeness error {completeness_error:.2g}")
        self.logit = logit
        self.baseline = baseline
        self.completeness_error = completeness_error


def attribute_logit(model, text, answer, wrong=None, position: int = -1,
                    unit: str = "component") -> Attribution:
    """Direct logit attribution, with the final norm's scale held: by "component", "head",
    "neuron", or "source" (heads split by key). ``answer``, ``wrong``: a token, its text or id; of
    several texts one each, or one for all, and the values are means over the texts (of "source",
    those of one length)."""
    texts = _texts(model, text)
    if texts is not None:
        each = [attribute_logit(model, one, right, false, position, unit) for one, right, false
                in zip(texts, _inputs.of_each(answer, len(texts), "answer"),
                       _inputs.of_each(wrong, len(texts), "wrong"))]
        if any(one.names != each[0].names for one in each):
            raise InvalidArgument("the texts have different parts: expected texts of one length")
        return Attribution(each[0].names, *_inputs.mean_and_error([one.values for one in each]))
    return Attribution(*_heed.attribute_logit(
        model._hooked, _tokens(model, text), _id(model, answer),
        None if wrong is None else _id(model, wrong), position, unit))


def attribute_tokens(model, text, answer, wrong=None, position: int = -1, steps: int = 16,
                     baseline="zero") -> Any:
    """Integrated gradients from a baseline: ``values`` (T), which sum to the change of the logit. Of
    several texts, a list, with an ``answer`` and a ``wrong`` token each, or one for all.

    ``steps``: points between neighbouring powers of ten of the way from the baseline to the text,
    and how many of these intervals may be halved, the worst first.
    ``baseline``: "zero" or "mean" (of all embeddings), or what the text is compared with: a token
    (its text or id) at every position, or a text or ids of as many tokens. Unsupported is raised
    where the values miss their sum by more than 5 %: take more steps, or another baseline.
    """
    texts = _texts(model, text)
    if texts is not None:
        return [attribute_tokens(model, one, right, false, position, steps, baseline)
                for one, right, false in zip(texts, _inputs.of_each(answer, len(texts), "answer"),
                                             _inputs.of_each(wrong, len(texts), "wrong"))]
    tokens = _tokens(model, text)
    values, logit, start, error = _heed.attribute_tokens(
        model._hooked, tokens, _id(model, answer), None if wrong is None else _id(model, wrong),
        position, steps, *_baseline(model, baseline))
    return TokenAttribution(model._pieces(tokens), tokens, values, logit, start, error)


def _baseline(model, baseline):
    """Its kind and, of "tokens", their ids."""
    if isinstance(baseline, str) and baseline in ("zero", "mean"):
        return baseline, np.empty(0, np.int32)
    if isinstance(baseline, str):
        ids = model._handle.encode(baseline)
        return "tokens", np.array(ids, np.int32) if len(ids) == 1 else _tokens(model, baseline)
    if isinstance(baseline, (int, np.integer)) and not isinstance(baseline, bool):
        return "tokens", _inputs.token_array([baseline])
    return "tokens", _tokens(model, baseline)


class HeadStatistics(dict):
    """Statistics of heads (L, H) by name; of several texts means, with ``standard_errors`` by the
    same names."""

    standard_errors: Optional[Dict[str, np.ndarray]] = None


def heads(model, text=None, *, source=None, target=None, kind: Optional[str] = None
          ) -> HeadStatistics:
    """Statistics of every head on a text, each (L, H), as means over all queries that see more than
    one token: entropy in nats, evenness, distance, and mean weights on the first token, the last
    one seen, the own one, the previous, the next (in encoders), other copies of the token
    ("duplicate") and what followed them ("induction"); the "largest" weight. As `heed heads`.

    Of a translator, those of a ``kind`` of attention, "encoder", "decoder" or "cross" ["cross"];
    statistics that the kind has not are zero. Of several texts, the means over them, whatever their
    lengths.
    """
    if kind is not None and not model.is_translator:
        raise InvalidArgument(f"kind is {kind!r}: '{model.name}' has one stack, expected none")
    texts = _texts(model, text)
    if texts is not None:
        each = [heads(model, one) for one in texts]
        means = {name: _inputs.mean_and_error([one[name] for one in each]) for name in each[0]}
        found = HeadStatistics({name: mean for name, (mean, _) in means.items()})
        found.standard_errors = {name: error for name, (_, error) in means.items()}
        return found
    read = model._read_one(text, source, target)
    if kind is None:
        kind = "cross" if model.is_translator else ""
    return HeadStatistics(_heed.head_statistics(model._hooked, read, kind))


def detect_head(model, text, detection_pattern, exclude_bos: bool = False,
                exclude_current_token: bool = False, error_measure: str = "mul") -> np.ndarray:
    """How much every head's pattern looks like another, (L, H) (TransformerLens: detect_head).

    ``detection_pattern``: "previous_token_head", "duplicate_token_head", "induction_head", or an
    array (T, T). "mul": the share of attention on it; "abs": one less the mean difference.
    """
    tokens = _tokens(model, text)
    if isinstance(detection_pattern, str):
        wanted = _heed.detection_pattern(detection_pattern, tokens)
    else:
        wanted = _inputs.float_array(detection_pattern, "the detection pattern")
    _, cache = model.run_with_cache(tokens, "pattern", return_type=None)
    return _heed.detect_heads(cache._recorded, wanted, error_measure, exclude_bos,
                              exclude_current_token)


def show_tokens(model, text, values=None, caption: str = "") -> Tokens:
    """A picture of a text's tokens, coloured by numbers (T) if there are some."""
    tokens = _tokens(model, text)
    if values is not None and np.size(values) != len(tokens):
        raise InvalidArgument(f"there are {np.size(values)} numbers for {len(tokens)} tokens")
    return Tokens(model._pieces(tokens), tokens, values, caption)


def show_attention(model, text, layer: int) -> AttentionPicture:
    """A picture of what the heads of a layer attend to."""
    tokens = _tokens(model, text)
    _, cache = model.run_with_cache(tokens, f"pattern{layer}", return_type=None)
    return AttentionPicture(cache["pattern", layer], model._pieces(tokens), f"Layer {layer}")


def save_processed(model, directory: str) -> None:
    """Writes the same model with norms folded into weights, weights centred and value biases
    folded, which are easier to interpret (TransformerLens: process_weights)."""
    model._refuse_translator("processed weights")
    _heed.save_processed(model._handle, str(directory))
