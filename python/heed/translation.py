"""Translation with an encoder and a decoder (Marian, BART, T5, heed's own)."""

from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _heed, _inputs
from .cache import PairActivationCache
from .errors import InvalidArgument
from .hooks import Hooked, call_with_gradient, resolved, wanted_return
from .pictures import LensTable

Text = Union[str, np.ndarray, Sequence[int]]
Hooks = Iterable[Tuple[Union[str, Callable[[str], bool]], Callable]]


class Hypothesis(NamedTuple):
    text: str
    tokens: List[int]
    log_probability: float
    score: float
    finished: bool


class Translation(NamedTuple):
    source: List[int]  # tokens that the encoder reads
    hypotheses: List[Hypothesis]  # the best first
    cross_attention: Optional[np.ndarray]  # (L, H, T, S) of the best one, where it was asked for

    @property
    def text(self) -> str:
        return self.hypotheses[0].text


class Translator(Hooked):
    """``heed.Translator.load("translator")`` is the built-in one, English to German.

    Its passes read a source and a target, each a text or token ids. What the decoder reads begins
    with its start: position t has read tokens 0 to t and predicts token t + 1, the last one the
    end. Without a target, it is the model's own translation without hooks, the most likely token
    each time.
    """

    @classmethod
    def load(cls, name_or_directory: str = "translator") -> "Translator":
        return cls(_heed.Translator.load(_inputs.name_or_path(name_or_directory)))

    @property
    def name(self) -> str:
        return self._handle.name

    def layers(self, stack: str = "decoder") -> int:
        """How many layers the "encoder" or the "decoder" has."""
        if stack not in ("encoder", "decoder"):
            raise InvalidArgument(f"the stack is {stack!r}, expected 'encoder' or 'decoder'")
        return len([name for name in self._hook_names
                    if name.startswith(stack) and name.endswith(".hook_resid_pre")])

    def __repr__(self):
        return (f"heed.Translator({self.name!r}, {self.layers('encoder')} layers of the encoder, "
                f"{self.layers('decoder')} of the decoder)")

    # Tokens

    def to_tokens(self, source: str) -> np.ndarray:
        """What the encoder reads of a text, (M)."""
        return np.array(self._handle.encode(source), np.int32)

    def to_target_tokens(self, target: Text) -> np.ndarray:
        """What the decoder reads of a text or of ids, (T): its start first."""
        if isinstance(target, str):
            return np.array(self._handle.decoder_tokens(target), np.int32)
        ids = _inputs.token_array(target).reshape(-1)
        return np.array(self._handle.decoder_input(ids), np.int32)

    def to_string(self, tokens) -> str:
        """The text of ids of the target, without special ones."""
        return self._handle.decode(_inputs.token_array(tokens).reshape(-1))

    def source_pieces(self, tokens) -> List[str]:
        return self._handle.source_pieces(_inputs.token_array(tokens).reshape(-1))

    def target_pieces(self, tokens) -> List[str]:
        return self._handle.target_pieces(_inputs.token_array(tokens).reshape(-1))

    def _pair(self, source: Text, target: Optional[Text]):
        """((M), (T)) that the stacks read."""
        read = (self.to_tokens(source) if isinstance(source, str)
                else _inputs.token_array(source).reshape(-1))
        if target is None:
            greedy = Hypothesis(*self._handle.translate_greedily(read, 0, [])[0])
            target = greedy.tokens[:-1] if greedy.finished else greedy.tokens
        return read, self.to_target_tokens(target)

    def _text_ids(self, text):
        """A source, or (source, target), as interventions take them."""
        source, target = text if isinstance(text, tuple) else (text, None)
        read, written = self._pair(source, target)
        return read.tolist(), written.tolist()

    # Passes

    def __call__(self, source: Text, target: Optional[Text] = None,
                 return_type: Optional[str] = "logits", loss_per_token: bool = False):
        """Logits (1, T, V) of the token after each that the decoder reads; with ``return_type``
        "loss" the mean loss of these tokens, of which the last is the end, with "both" the two,
        with None nothing."""
        return self.run_with_hooks(source, target, return_type=return_type,
                                   loss_per_token=loss_per_token)

    forward = __call__

    def run_with_hooks(self, source: Text, target: Optional[Text] = None, fwd_hooks: Hooks = (),
                       bwd_hooks: Hooks = (), return_type: Optional[str] = "logits",
                       loss_per_token: bool = False, logit_target=None):
        """Runs both stacks with functions at their points, as :meth:`heed.Model.run_with_hooks`.

        Points are listed in ``hook_names``; "cross.pattern1" and the like are short names.
        Gradients are of the mean loss, or of ``logit_target``, a list of (position, token id,
        weight) of logits.
        """
        forward = self._forward(fwd_hooks)
        backward = resolved(self, bwd_hooks, call_with_gradient)
        wanted_return(return_type)
        read, written = self._pair(source, target)
        if return_type == "loss" and not backward:
            return self._loss(self._handle.losses(read, written, forward), loss_per_token)
        logits = self._handle.run(read, written, forward, backward, list(logit_target or []))
        if return_type is None:
            return None
        if return_type == "logits":
            return logits
        losses = self._loss(self._losses_of(logits, written), loss_per_token)
        return losses if return_type == "loss" else (logits, losses)

    def _losses_of(self, logits, target):
        return _heed.losses_of_next(logits, self._handle.next_tokens(target))

    @staticmethod
    def _loss(losses, per_token):
        return losses if per_token else float(np.mean(losses, dtype=np.float64))

    def loss(self, source: Text, target: Text, per_token: bool = False):
        """The mean loss in nats of the target's tokens and its end; with ``per_token``, (1, T)."""
        return self(source, target, "loss", per_token)

    def run_with_cache(self, source: Text, target: Optional[Text] = None,
                       names_filter: Union[None, str, Sequence[str], Callable[[str], bool]] = None,
                       return_type: Optional[str] = "logits", remove_batch_dim: bool = False,
                       incl_bwd: bool = False, fwd_hooks: Hooks = (), bwd_hooks: Hooks = (),
                       logit_target=None):
        """(logits, :class:`heed.PairActivationCache`) of a pass over a source and a target.

        The cache holds the points that ``names_filter`` selects (a name, a glob, a short name such
        as "cross.pattern", a list, a function of a name) [all]. Scores and patterns are computed
        where they are sliced. ``incl_bwd``: also gradients, as ``name + "_grad"``.
        """
        options = self._options(fwd_hooks, bwd_hooks, logit_target)
        points = self._points(names_filter, incl_bwd)
        wants_logits = wanted_return(return_type) is not None
        read, written = self._pair(source, target)
        recorded = _heed.record_pair(self._handle, read, written, points, wants_logits, options)
        cache = PairActivationCache(recorded, self)
        if remove_batch_dim:
            cache = cache.remove_batch_dim()
        if not wants_logits:
            return None, cache
        logits = recorded.logits
        if return_type == "logits":
            return logits, cache
        loss = self._loss(self._losses_of(logits, written), False)
        return (loss if return_type == "loss" else (logits, loss)), cache

    # What the passes show

    def heads(self, source: Text, target: Optional[Text] = None,
              kind: str = "cross") -> Dict[str, np.ndarray]:
        """Statistics of every head of the "encoder", the "decoder" or the "cross" attention, each
        (L, H), as :func:`heed.heads`. Those that the kind has not are zero."""
        read, written = self._pair(source, target)
        return _heed.pair_head_statistics(self._handle, read, written, kind)

    def lens(self, source: Text, target: Optional[Text] = None, top: int = 5) -> LensTable:
        """The logit lens on the decoder: what the stream before every layer would predict after
        each position of the target, (L + 1, T, top)."""
        read, written = self._pair(source, target)
        found = _heed.pair_logit_lens(self._handle, read, written, top)
        ids = sorted({int(token) for token in found[0].reshape(-1)})
        return LensTable(*found, dict(zip(ids, self.target_pieces(ids))),
                         self.target_pieces(written))

    # Translation

    def translate(self, text: Union[str, Sequence[str]], beams: int = 5,
                  length_penalty: float = 1.0, best: int = 1, longest: int = 0,
                  alignment: bool = False,
                  fwd_hooks: Hooks = ()) -> Union[Translation, List[Translation]]:
        """Translates one text, or several together. ``alignment``: also the cross-attention.

        Hooks need ``beams=1``, the most likely token each time: they see the source once, then
        one position of the target in each step (``hook.first_position`` tells which).
        """
        texts = [text] if isinstance(text, str) else list(text)
        hooks = self._forward(fwd_hooks)
        if hooks:
            found = [self._greedy(one, hooks, beams, best, longest, alignment) for one in texts]
        else:
            found = self._handle.translate(texts, beams, length_penalty, best, longest, alignment)
        all_of_them = [Translation(source, [Hypothesis(*one) for one in hypotheses], attention)
                       for source, hypotheses, attention in found]
        return all_of_them[0] if isinstance(text, str) else all_of_them

    def _greedy(self, text, hooks, beams, best, longest, alignment):
        if beams != 1 or best != 1 or alignment:
            raise InvalidArgument(f"hooks see one hypothesis: beams is {beams}, expected 1, with "
                                  "neither best nor alignment")
        source = self.to_tokens(text)
        longest = longest or 3 * len(source) + 16
        return source.tolist(), self._handle.translate_greedily(source, longest, hooks), None

    def cross_attention(self, source, target) -> np.ndarray:
        """(L, H, T, S) of any pair of tokens."""
        return self._handle.cross_attention(_inputs.token_array(source).reshape(-1),
                                            _inputs.token_array(target).reshape(-1))
