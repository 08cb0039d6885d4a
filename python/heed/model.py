"""Models: tokens, logits, losses, generation, hooks, caches, weights."""

from dataclasses import dataclass
from typing import (Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple,
                    Union)

import numpy as np

from . import _heed, _inputs
from .cache import ActivationCache
from .errors import InvalidArgument, NotFound, Unsupported
from .hooks import Hooked, call_with_gradient, resolved, wanted_return
from .reading import Reader

Input = Union[str, Sequence[str], np.ndarray, Sequence[int], Sequence[Sequence[int]]]
Hooks = Iterable[Tuple[Union[str, Callable[[str], bool]], Callable]]


@dataclass(frozen=True)
class Config:
    """The architecture of a model, under TransformerLens's names where it has them."""

    model_name: str
    n_layers: int  # L
    d_model: int  # C
    n_heads: int  # H, of queries
    n_key_value_heads: int  # G
    d_head: int  # D
    d_mlp: int  # F
    d_vocab: int  # V
    n_ctx: int
    n_params: int
    act_fn: str
    gated_mlp: bool
    normalization_type: str  # "LN" or "RMS"
    norm_placement: str  # "pre" or "post"
    eps: float
    positions: str  # "learned", "rotary", "sinusoidal" or "none"
    rotary_base: float
    windows: Tuple[int, ...]  # of each layer: positions a query attends to; 0: all before
    parallel_attn_mlp: bool
    tied_unembedding: bool
    dtype: str


class Step(NamedTuple):
    """A step of a generation: ``str(step)`` is its text."""

    token: Optional[int]  # None: text that was held back, at the end
    text: str  # whole characters that are final now; may be empty
    logits: np.ndarray  # (V), that the token was drawn from

    def __str__(self):
        return self.text


class Generation:
    """A generation, computed as it is iterated: ``for step in model.generate(…)``.

    ``tokens``, ``text`` and ``finish_reason`` ("length", "stop_token", "stop_string",
    "context_full") are those so far; :meth:`finish` computes the rest.
    """

    def __init__(self, steps):
        self._steps = steps

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = self._steps.next()
        if step is None:
            raise StopIteration
        return Step(*step)

    def finish(self) -> "Generation":
        for _ in self:
            pass
        return self

    @property
    def tokens(self) -> List[int]:
        return self._steps.finished()[0]

    @property
    def text(self) -> str:
        return self._steps.finished()[1]

    @property
    def finish_reason(self) -> Optional[str]:
        return self._steps.finished()[2] or None

    def __str__(self):
        return self.text


def _dimension(name: str, doc: str):
    def weight(self):
        try:
            return self._weight(name)
        except (NotFound, Unsupported) as error:  # so that hasattr() says it is not there
            raise AttributeError(str(error)) from error

    return property(weight, doc=doc)


class Model(Hooked, Reader):
    """A GPT-style model: ``heed.load("starter")``.

    Text, token ids ``(T,)`` or ``(B, T)``, and lists of texts or of ids are taken alike. Texts of
    different lengths are computed one after the other, and give lists.
    """

    def __init__(self, handle: "_heed.Model"):
        super().__init__(handle)
        known = handle.dimensions
        self.cfg = Config(
            model_name=handle.name, n_layers=known["layers"], d_model=known["channels"],
            n_heads=known["heads"], n_key_value_heads=known["key_value_heads"],
            d_head=known["head_size"], d_mlp=known["feed_forward"], d_vocab=known["vocabulary"],
            n_ctx=known["context"], n_params=known["parameters"], act_fn=known["activation"],
            gated_mlp=known["gated"], normalization_type="LN" if known["norm"] == "layer" else "RMS",
            norm_placement=known["norm_placement"], eps=known["norm_epsilon"],
            positions=known["positions"], rotary_base=known["rotary_base"],
            windows=tuple(known["windows"]), parallel_attn_mlp=known["parallel"],
            tied_unembedding=known["tied_unembedding"], dtype=known["dtype"])

    @classmethod
    def load(cls, name_or_directory: str, dtype: Optional[str] = None, cache_dtype: str = "f32",
             pack: bool = False) -> "Model":
        """Loads a model by the name with which `heed pull` downloaded it, the built-in
        ``"starter"``, a training run or a directory of Hugging Face's layout.

        ``dtype``: "f32", "bf16", "int8" or "int4" for the matrices of linear layers [as stored].
        ``cache_dtype``: "f32", "bf16" or "int8" for keys and values of generations.
        ``pack``: also keep f32 weights in the order in which long prompts read them.
        """
        return cls(_heed.Model.load(_inputs.name_or_path(name_or_directory), dtype or "", cache_dtype, pack))

    from_pretrained = load

    def close(self) -> None:
        """Releases the weights, once nothing views them; the model then refuses all calls."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __reduce__(self):
        raise Unsupported(f"a model cannot be pickled or copied: heed.load({self.cfg.model_name!r}) "
                          "loads it again")

    def __repr__(self):
        cfg = self.cfg
        return (f"heed.Model({cfg.model_name!r}, {cfg.n_layers} layers of {cfg.n_heads} heads, "
                f"width {cfg.d_model}, {cfg.n_params:,} parameters, {cfg.dtype})")

    # Tokens

    def to_tokens(self, text: Union[str, Sequence[str]],
                  prepend_bos: Optional[bool] = None) -> Union[np.ndarray, List[np.ndarray]]:
        """Token ids, int32: (1, T) of a text; of several texts (B, T), or a list of (T,) where
        their lengths differ.

        ``prepend_bos``: put the token in front that begins or separates texts. [what the
        tokenizer itself puts before a prompt, as the command line does]
        """
        if isinstance(text, str):
            return self._tokens_of(text, prepend_bos)[None]
        rows = [self._tokens_of(one, prepend_bos) for one in text]
        if not rows:
            raise InvalidArgument("there are no texts, expected at least one")
        return np.stack(rows) if len({len(row) for row in rows}) == 1 else rows

    def _tokens_of(self, text: str, prepend_bos: Optional[bool]) -> np.ndarray:
        if not isinstance(text, str):
            raise InvalidArgument(f"a text is {type(text).__name__}, expected str")
        if prepend_bos is None:
            return np.array(self._handle.prompt_tokens(text), np.int32)
        ids = self._handle.encode(text)
        if prepend_bos:
            first = self._handle.beginning_token()
            if first is None:
                raise InvalidArgument(f"the tokenizer of '{self.cfg.model_name}' has no token that "
                                      "begins a text")
            ids = [first] + ids
        return np.array(ids, np.int32)

    def to_string(self, tokens) -> Union[str, List[str]]:
        """The text of ids (T,), or of each row of (B, T)."""
        array = _inputs.token_array(tokens)
        if array.ndim == 2:
            return [self._handle.decode(row).decode("utf-8", "replace") for row in array]
        return self._handle.decode(array).decode("utf-8", "replace")

    def to_str_tokens(self, text: Input, prepend_bos: Optional[bool] = None) -> List[str]:
        """The text of each token of a text or of ids (T,) or (1, T)."""
        tokens = self._one(self._tokens(text, prepend_bos))
        return [piece.decode("utf-8", "replace") for piece in self._handle.token_texts(tokens)]

    def to_single_token(self, text: str) -> int:
        """The id of a text that is one token, such as ``" Mary"``."""
        ids = self._handle.part_tokens(text)
        if len(ids) != 1:
            raise InvalidArgument(f"{text!r} is {len(ids)} tokens, expected one")
        return ids[0]

    def to_single_str_token(self, token: int) -> str:
        return self.to_str_tokens([int(token)])[0]

    def get_token_position(self, token: Union[str, int], text: Input,
                           mode: str = "first") -> int:
        """The position of a token in a text: the ``"first"``, or the ``"last"``."""
        wanted = self.to_single_token(token) if isinstance(token, str) else int(token)
        found = np.flatnonzero(self._one(self._tokens(text)) == wanted)
        if len(found) == 0:
            raise InvalidArgument(f"the token {token!r} does not occur in the text")
        return int(found[0 if mode == "first" else -1])

    def _tokens(self, value: Input, prepend_bos: Optional[bool] = None):
        """(B, T), or a list of (T,) of different lengths."""
        if isinstance(value, str):
            return self.to_tokens(value, prepend_bos)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            return self.to_tokens(value, prepend_bos)
        if isinstance(value, (list, tuple)) and value and all(
                np.ndim(row) == 1 or (np.ndim(row) == 2 and len(row) == 1) for row in value):
            rows = [_inputs.token_array(row).reshape(-1) for row in value]
            return np.stack(rows) if len({len(row) for row in rows}) == 1 else rows
        array = _inputs.token_array(value)
        return array[None] if array.ndim == 1 else array

    def _text_ids(self, text):
        """A text as interventions take it: no source, and its ids."""
        return [], self._one(self._tokens(text)).tolist()

    @staticmethod
    def _one(tokens) -> np.ndarray:
        """(T,) of a batch of one."""
        if isinstance(tokens, list) or tokens.shape[0] != 1:
            raise InvalidArgument(f"there are {len(tokens)} texts, expected one")
        return tokens[0]

    # Passes

    @_inputs.naming_arguments
    def __call__(self, input: Input, return_type: Optional[str] = "logits",
                 loss_per_token: bool = False, prepend_bos: Optional[bool] = None,
                 token_types: Optional[Input] = None):
        """Logits (B, T, V); with ``return_type`` "loss" the mean next-token loss in nats, with
        "both" the two, with None nothing.

        Texts of different lengths give a list of (1, T, V). ``token_types``: of an encoder that
        joins two texts, which of them each token is of, in the shape of the tokens [all 0].
        """
        return self.run_with_hooks(input, (), return_type=return_type,
                                   loss_per_token=loss_per_token, prepend_bos=prepend_bos,
                                   token_types=token_types)

    forward = __call__

    @_inputs.naming_arguments
    def run_with_hooks(self, input: Input, fwd_hooks: Hooks = (), bwd_hooks: Hooks = (),
                       return_type: Optional[str] = "logits", loss_per_token: bool = False,
                       prepend_bos: Optional[bool] = None, target=None,
                       token_types: Optional[Input] = None):
        """Runs the model with functions at its points.

        ``fwd_hooks``: pairs of a name (or a function of names that says whether) and a function
        of ``(values, hook)``. It may change the values in place or return others; what it keeps
        stays as it was left. Points are listed in ``hook_names``; shapes are (B, T, …), of scores
        and patterns (B, H, T, S).
        ``bwd_hooks``: the same with the gradient at their points, of the mean next-token loss, or
        of ``target``, a list of (position, token id, weight) of logits. What they leave is what
        backward goes on with; gradients of norms, scores, patterns, embeddings and of the inputs
        and results of heads can only be read.
        """
        forward = self._forward(fwd_hooks)
        backward = resolved(self, bwd_hooks, call_with_gradient)
        tokens = self._tokens(input, prepend_bos)
        types = self._types(token_types, tokens)
        if not isinstance(tokens, list):
            return self._run(tokens, types, forward, backward, return_type, loss_per_token, target)
        return [self._run(row[None], types, forward, backward, return_type, loss_per_token, target)
                for row in tokens]

    @staticmethod
    def _types(token_types, tokens) -> np.ndarray:
        """As heed takes them: in the shape of the tokens, or none."""
        if token_types is None or (isinstance(token_types, np.ndarray) and token_types.size == 0):
            return np.empty(0, np.int32)
        if isinstance(tokens, list):
            raise InvalidArgument("token_types are those of texts of one length: run others one by "
                                  "one")
        types = _inputs.token_array(token_types)
        types = types[None] if types.ndim == 1 else types
        if types.shape != tokens.shape:
            raise InvalidArgument(f"token_types have the shape {types.shape}, expected that of the "
                                  f"tokens, {tokens.shape}")
        return types

    def _run(self, tokens, types, forward, backward, return_type, loss_per_token, target):
        if wanted_return(return_type) == "loss" and not backward:
            return self._loss(self._handle.losses(tokens, forward), loss_per_token)
        logits = self._handle.run(tokens, types, forward, backward,
                                  _inputs.gradient_target(target))
        if return_type is None:
            return None
        if return_type == "logits":
            return logits
        losses = self._loss(_heed.losses_of(logits, tokens), loss_per_token)
        return losses if return_type == "loss" else (logits, losses)

    @staticmethod
    def _loss(losses, per_token):
        return losses if per_token else float(np.mean(losses, dtype=np.float64))

    def loss(self, input: Input, per_token: bool = False, prepend_bos: Optional[bool] = None):
        """The mean next-token loss in nats; with ``per_token``, (B, T − 1) of every token but the
        first. Logits of a whole text are never in memory."""
        return self(input, "loss", per_token, prepend_bos)

    @_inputs.naming_arguments
    def run_with_cache(self, input: Input,
                       names_filter: Union[None, str, Sequence[str], Callable[[str], bool]] = None,
                       return_type: Optional[str] = "logits", remove_batch_dim: bool = False,
                       incl_bwd: bool = False, fwd_hooks: Hooks = (),
                       prepend_bos: Optional[bool] = None, target=None, bwd_hooks: Hooks = (),
                       token_types: Optional[Input] = None):
        """(logits, :class:`ActivationCache`) of a pass.

        Without ``names_filter`` everything is kept where the pass wrote it, and what follows from
        it (scores, patterns, norms, neurons after the activation) is computed when it is read.
        With names, globs ("blocks.*.attn.hook_q"), short names ("pattern", "resid_post3") or a
        function of names, only copies of those points are.
        ``incl_bwd``: also their gradients, as ``name + "_grad"``, of the mean next-token loss or
        of ``target``: a list of (position, token id, weight) of logits. For one text.

        Texts of different lengths give a list of what is returned, and a list of caches.
        """
        tokens = self._tokens(input, prepend_bos)
        if isinstance(tokens, list):
            each = [self.run_with_cache(row, names_filter, return_type, remove_batch_dim, incl_bwd,
                                        fwd_hooks, target=target, bwd_hooks=bwd_hooks,
                                        token_types=self._types(token_types, tokens))
                    for row in tokens]
            return [found for found, _ in each], [cache for _, cache in each]
        options = self._options(fwd_hooks, bwd_hooks, target)
        points = self._points(names_filter, incl_bwd)
        wants_logits = wanted_return(return_type) is not None
        recorded = _heed.record(self._handle, tokens, self._types(token_types, tokens), points,
                                wants_logits, options)
        cache = ActivationCache(recorded, self)
        if remove_batch_dim:
            cache = cache.remove_batch_dim()
        if not wants_logits:
            return None, cache
        logits = recorded.logits
        if return_type == "logits":
            return logits, cache
        loss = float(np.mean(_heed.losses_of(logits, tokens), dtype=np.float64))
        return (loss if return_type == "loss" else (logits, loss)), cache

    @_inputs.naming_arguments
    def generate(self, prompt: Input, max_new_tokens: int = 128, *, stop: Sequence[str] = (),
                 shift_context: bool = False, fwd_hooks: Hooks = (),
                 prepend_bos: Optional[bool] = None,
                 **sampling: float) -> Union[Generation, List[Generation]]:
        """Continues a prompt token by token with a key-value cache, as it is iterated.

            for step in model.generate("Once upon a time", max_new_tokens=20):
                print(step.text, end="", flush=True)

        Sampling options are those of `heed generate`: ``temperature`` 0 is greedy, the same ``seed``
        gives the same text. ``stop`` are texts that end it. Hooks see the prompt's pass, then one
        position in each step (``hook.first_position`` tells which). Several prompts give a list of
        generations, each with the tokens that it has alone.
        """
        hooks = self._forward(fwd_hooks)
        stop = [stop] if isinstance(stop, str) else list(stop)
        each = [Generation(self._handle.generate(row, max_new_tokens, sampling, stop,
                                                 shift_context, hooks))
                for row in self._tokens(prompt, prepend_bos)]
        return each if len(each) != 1 else each[0]

    # Weights

    @property
    def weight_names(self) -> List[str]:
        return self._handle.weight_names()

    def weight(self, name: str) -> np.ndarray:
        """A view of a weight by TransformerLens's name, such as ``"blocks.3.attn.W_Q"`` (H, C, D).

        Writable where passes read it (f32, not packed): a change then takes effect at once.
        """
        return self._handle.weight(name)

    _weight = weight

    W_E = _dimension("embed.W_E", "Token embedding (V, C).")
    W_pos = _dimension("pos_embed.W_pos", "Position embedding (P, C).")
    W_U = _dimension("unembed.W_U", "Unembedding (C, V); of a tied model W_E transposed, and "
                     "read-only: change W_E.")
    b_U = _dimension("unembed.b_U", "Bias of the unembedding (V).")
    W_Q = _dimension("attn.W_Q", "Queries of all layers (L, H, C, D).")
    W_K = _dimension("attn.W_K", "Keys of all layers (L, G, C, D).")
    W_V = _dimension("attn.W_V", "Values of all layers (L, G, C, D).")
    W_O = _dimension("attn.W_O", "Outputs of the heads of all layers (L, H, D, C).")
    W_in = _dimension("mlp.W_in", "Inputs of the neurons of all layers (L, C, F).")
    W_gate = _dimension("mlp.W_gate", "Gates of the neurons of all layers (L, C, F).")
    W_out = _dimension("mlp.W_out", "Outputs of the neurons of all layers (L, F, C).")

    @property
    def all_head_labels(self) -> List[str]:
        return [f"L{layer}H{head}" for layer in range(self.cfg.n_layers)
                for head in range(self.cfg.n_heads)]


def load(name_or_directory: str, dtype: Optional[str] = None, cache_dtype: str = "f32",
         pack: bool = False) -> Model:
    """See :meth:`Model.load`."""
    return Model.load(name_or_directory, dtype, cache_dtype, pack)
