"""Models: tokens, logits, losses, generation, hooks, caches, weights."""

from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _heed, _inputs, metrics, processing
from ._texts import OneText, Pair, stream_of, types_of, unpadded
from .cache import ActivationCache, PairActivationCache
from .config import Config, config_of
from .errors import InvalidArgument, NotFound, Unsupported
from .generation import Generation
from .hooks import Hooked, wanted_return
from .reading import Reader
from .sae import WithSaes
from .translation import Hypothesis, Translation
from .utils import lm_cross_entropy_loss
from .weights import Weights

Input = Union[str, Sequence[str], np.ndarray, Sequence[int], Sequence[Sequence[int]]]
Hooks = Iterable[Tuple[Union[str, Callable[[str], bool]], Callable]]


class Model(WithSaes, Hooked, Reader, Weights):
    """A transformer: ``heed.load("starter")`` of one stack, ``heed.load("translator")`` of an
    encoder and a decoder.

    Of one stack, text, token ids ``(T,)`` or ``(B, T)``, and lists of texts or of ids are taken
    alike. Texts of different lengths are read in one pass, and give lists: to the last bits, what
    each gives alone.

    A translator reads ``source=`` and ``target=``, each a text or ids. What its decoder reads
    begins with its start: position t has read tokens 0 to t and predicts token t + 1, the last one
    the end. Without a target, it is the model's own translation without hooks, the most likely
    token each time. Several sources are a list of texts, and give lists.

    ``cfg`` is the architecture, of a translator that of its decoder; ``encoder_cfg`` that of its
    encoder, or None.
    """

    def __init__(self, handle):
        super().__init__(handle)
        self.cfg = config_of(handle.name, handle.dimensions("decoder"))
        self.encoder_cfg = (config_of(handle.name, handle.dimensions("encoder"))
                            if handle.is_translator else None)

    @classmethod
    def load(cls, name_or_directory: str, dtype: Optional[str] = None, cache_dtype: str = "f32",
             pack: bool = False, device: Optional[str] = None) -> "Model":
        """Loads a model by the name with which `heed pull` downloaded it, the built-in
        ``"starter"`` or ``"translator"``, a training run or a directory of Hugging Face's layout.

        ``dtype``: "f32", "bf16", "int8" or "int4" for the matrices of linear layers [as stored].
        ``cache_dtype``: "f32", "bf16" or "int8" for keys and values of generations.
        ``pack``: also keep f32 weights in the order in which long prompts read them.
        ``device``: "cpu", "cuda", "cuda:1" or "auto" [HEED_DEVICE, or "cpu"]: where passes are
        computed. Arrays are the CPU's. ``heed.set_f32_products("tf32")`` has GPUs multiply f32 in TF32.
        """
        name = _inputs.name_or_path(name_or_directory)
        return cls(_heed.Model.load(name, dtype or "", cache_dtype, pack, device or ""))

    @classmethod
    def from_pretrained(cls, model_name: str, dtype: Optional[str] = None, cache_dtype: str = "f32",
                        pack: bool = False, *, fold_ln: Optional[bool] = None,
                        center_writing_weights: Optional[bool] = None,
                        center_unembed: Optional[bool] = None,
                        fold_value_biases: Optional[bool] = None,
                        refactor_factored_attn_matrices: bool = False, device=None) -> "Model":
        """:meth:`load` with TransformerLens's arguments.

        Weights are those of the file [TransformerLens processes them]. ``fold_ln``,
        ``center_writing_weights``, ``center_unembed`` and ``fold_value_biases`` are one option here:
        where one is True, all of it is done (:func:`heed.explain.save_processed`).
        ``refactor_factored_attn_matrices``: also queries and keys, and values and outputs, as the
        singular vectors of their products, of heads with keys of their own that turn none.
        ``device``: as of :meth:`load`.
        """
        return processing.load(cls, _inputs.name_or_path(model_name), dtype, cache_dtype, pack, {
            "fold_ln": fold_ln, "center_writing_weights": center_writing_weights,
            "center_unembed": center_unembed, "fold_value_biases": fold_value_biases},
            refactor_factored_attn_matrices, device)

    @property
    def device(self) -> str:
        """Where passes are computed: "cpu", or "cuda:0"."""
        return self._handle.dimensions("decoder")["device"]

    @property
    def name(self) -> str:
        return self.cfg.model_name

    @property
    def is_translator(self) -> bool:
        """Whether it reads a source and a target."""
        return self.encoder_cfg is not None

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
        layers = (f"{self.encoder_cfg.n_layers} layers of the encoder, {cfg.n_layers} of the decoder"
                  if self.encoder_cfg else f"{cfg.n_layers} layers of {cfg.n_heads} heads")
        return (f"heed.Model({cfg.model_name!r}, {layers}, width {cfg.d_model}, "
                f"{cfg.n_params:,} parameters, {cfg.dtype})")

    # Tokens

    def to_tokens(self, text: Union[None, str, Sequence[str]] = None,
                  prepend_bos: Optional[bool] = None, *, source: Optional[str] = None,
                  target: Union[None, str, np.ndarray, Sequence[int]] = None
                  ) -> Union[np.ndarray, List[np.ndarray]]:
        """Token ids, int32: (1, T) of a text; of several texts (B, T), or a list of (T,) where
        their lengths differ.

        ``prepend_bos``: put the token in front that begins or separates texts. [what the
        tokenizer itself puts before a prompt, as the command line does]

        Of a translator, (1, M) of a ``source`` or (1, T) of a ``target``, also of ids, as the
        decoder reads it.
        """
        if self.is_translator:
            source = self._source(text, source, target)
            if prepend_bos is not None:
                raise InvalidArgument("prepend_bos is of models of one stack")
            return (self._source_ids(source) if source is not None else self._target_ids(target))[None]
        self._refuse_pair(source, target)
        if isinstance(text, str):
            return self._tokens_of(text, prepend_bos)[None]
        rows = [self._tokens_of(one, prepend_bos) for one in text or []]
        if not rows:
            raise InvalidArgument("there are no texts, expected at least one")
        return np.stack(rows) if len({len(row) for row in rows}) == 1 else rows

    def _source(self, text, source, target):
        """The one of two that was given; none for a target alone."""
        if (text is None) + (source is None) + (target is None) != 2:
            raise InvalidArgument(f"give '{self.name}', a translator, one of source= and target=")
        return text if source is None else source

    def _source_ids(self, source) -> np.ndarray:
        if isinstance(source, str):
            return np.array(self._handle.encode(source), np.int32)
        ids = _inputs.token_array(source).reshape(-1)
        if len(ids) == 0:
            raise InvalidArgument("the source has no tokens: expected at least one")
        return ids

    def _target_ids(self, target) -> np.ndarray:
        """What the decoder reads: its start first."""
        if isinstance(target, str):
            return np.array(self._handle.decoder_tokens(target), np.int32)
        return np.array(self._handle.decoder_input(_inputs.token_array(target).reshape(-1)), np.int32)

    def _refuse_pair(self, source, target):
        if source is not None or target is not None:
            raise InvalidArgument(f"'{self.name}' has one stack: source and target are texts of a "
                                  "translator, and gradients are of logit_target")

    def _refuse_translator(self, what: str):
        if self.is_translator:
            raise Unsupported(f"{what}: '{self.name}' is a translator, expected a model of one stack")

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
        """The text of ids (T,), or of each row of (B, T); of a translator, of targets, without
        special tokens."""
        array = _inputs.token_array(tokens)
        if array.ndim == 2:
            return [self._decoded(row) for row in array]
        return self._decoded(array)

    def _decoded(self, tokens) -> str:
        text = self._handle.decode(tokens)
        return text if isinstance(text, str) else text.decode("utf-8", "replace")

    def to_str_tokens(self, text: Optional[Input] = None, prepend_bos: Optional[bool] = None, *,
                      source=None, target=None) -> List[str]:
        """The text of each token of a text or of ids (T,) or (1, T); of a translator, of a
        ``source`` or a ``target``."""
        if not self.is_translator:
            self._refuse_pair(source, target)
            return self._pieces(self._one(self._tokens(text, prepend_bos)))
        source = self._source(text, source, target)
        if source is None:
            ids = (self._target_ids(target) if isinstance(target, str)
                   else _inputs.token_array(target).reshape(-1))
            return self._pieces(ids)
        return [piece.decode("utf-8", "replace")
                for piece in self._handle.source_texts(self._source_ids(source))]

    def _pieces(self, tokens) -> List[str]:
        """Of ids of a text, or of a target."""
        return [piece.decode("utf-8", "replace") for piece in self._handle.token_texts(tokens)]

    def to_single_token(self, text: str) -> int:
        """The id of a text that is one token, such as ``" Mary"``; of a translator, of its target."""
        ids = self._handle.part_tokens(text)
        if len(ids) != 1:
            raise InvalidArgument(f"{text!r} is {len(ids)} tokens, expected one")
        return ids[0]

    def to_single_str_token(self, token: int) -> str:
        return self._pieces(_inputs.token_array([int(token)]))[0]

    def get_token_position(self, token: Union[str, int], text: Input,
                           mode: str = "first") -> int:
        """The position of a token in a text: the ``"first"``, or the ``"last"``."""
        wanted = self.to_single_token(token) if isinstance(token, str) else int(token)
        found = np.flatnonzero(self._one(self._tokens(text)) == wanted)
        if len(found) == 0:
            raise InvalidArgument(f"the token {token!r} does not occur in the text")
        return int(found[0 if mode == "first" else -1])

    def _tokens(self, value: Optional[Input], prepend_bos: Optional[bool] = None):
        """(B, T), or a list of (T,) of different lengths, of a model of one stack."""
        self._refuse_translator("one text")
        if value is None:
            raise InvalidArgument("there is no text, expected one")
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

    def _pair(self, source, target) -> Pair:
        read = self._source_ids(source)
        if target is None:
            greedy = Hypothesis(*self._handle.translate_greedily(read, 0, [])[0])
            target = greedy.tokens[:-1] if greedy.finished else greedy.tokens
        return Pair(read, self._target_ids(target))

    def _read(self, input=None, source=None, target=None, prepend_bos=None, token_types=None):
        """What a pass reads."""
        if not self.is_translator:
            self._refuse_pair(source, target)
            tokens = self._tokens(input, prepend_bos)
            return OneText(tokens, types_of(token_types, tokens))
        if (input is None) == (source is None):
            raise InvalidArgument(f"give the source of '{self.name}', a translator, once, as source=")
        if prepend_bos is not None or token_types is not None:
            raise InvalidArgument("prepend_bos and token_types are of models of one stack")
        source = input if source is None else source
        if not isinstance(source, (list, tuple)) or not source or not isinstance(source[0], str):
            return self._pair(source, target)
        targets = [None] * len(source) if target is None else target
        if isinstance(targets, str) or len(targets) != len(source):
            raise InvalidArgument(f"there are {len(source)} sources, expected as many targets")
        pairs = [self._pair(*each) for each in zip(source, targets)]
        return Pair([pair.source for pair in pairs], [pair.target for pair in pairs])

    def _read_one(self, input=None, source=None, target=None):
        """Of one text: a source (M), or (0) of a model of one stack, and a target (T)."""
        read = self._read(input, source, target)
        if isinstance(read, OneText):
            return np.empty(0, np.int32), self._one(read.tokens)
        if read.lengths:
            raise InvalidArgument(f"there are {len(read.lengths)} texts, expected one")
        return read.source, read.target

    def _text_ids(self, text):
        """Source and target ids of a text, as interventions take it: of a translator, a source or
        (source, target)."""
        if not self.is_translator:
            return [], self._one(self._tokens(text)).tolist()
        pair = self._pair(*text) if isinstance(text, tuple) else self._pair(text, None)
        return pair.source.tolist(), pair.target.tolist()

    @staticmethod
    def _one(tokens) -> np.ndarray:
        """(T,) of a batch of one."""
        if isinstance(tokens, list) or tokens.shape[0] != 1:
            raise InvalidArgument(f"there are {len(tokens)} texts, expected one")
        return tokens[0]

    # Passes

    @_inputs.naming_arguments
    def __call__(self, input: Optional[Input] = None, return_type: Optional[str] = "logits",
                 loss_per_token: bool = False, prepend_bos: Optional[bool] = None,
                 token_types: Optional[Input] = None, start_at_layer: Optional[int] = None,
                 stop_at_layer: Optional[int] = None, attention_mask=None, *, source=None,
                 target=None):
        """Logits (B, T, V) of the token after each; with ``return_type`` "loss" the mean next-token
        loss in nats (of a target, its end too), with "both" the two, with None nothing.

        Texts of different lengths give a list of (1, T, V). ``token_types``: of an encoder that
        joins two texts, which of them each token is of, in the shape of the tokens [all 0].
        ``start_at_layer``, ``stop_at_layer``: see :meth:`run_with_cache`. ``attention_mask`` (B, T):
        1 at the tokens of a text, 0 at what pads it on the left or on the right; the texts are read
        as those of their own lengths, from position 0 on.
        """
        return self.run_with_hooks(input, (), return_type=return_type,
                                   loss_per_token=loss_per_token, prepend_bos=prepend_bos,
                                   token_types=token_types, start_at_layer=start_at_layer,
                                   stop_at_layer=stop_at_layer, attention_mask=attention_mask,
                                   source=source, target=target)

    forward = __call__

    @_inputs.naming_arguments
    def run_with_hooks(self, input: Optional[Input] = None, fwd_hooks: Hooks = (),
                       bwd_hooks: Hooks = (), return_type: Optional[str] = "logits",
                       loss_per_token: bool = False, prepend_bos: Optional[bool] = None,
                       logit_target=None, token_types: Optional[Input] = None,
                       freeze: Sequence[str] = (), start_at_layer: Optional[int] = None,
                       stop_at_layer: Optional[int] = None, attention_mask=None, *, source=None,
                       target=None):
        """Runs the model with functions at its points.

        ``fwd_hooks``: pairs of a name (or a function of names that says whether) and a function
        of ``(values, hook)``. It may change the values in place or return others; what it keeps
        stays as it was left. Points are listed in ``hook_names``; shapes are (B, T, …), of scores
        and patterns (B, H, T, S). Of texts of different lengths it is called for each of them,
        with the (1, T, …) of that one (``hook.text`` tells which). Points of a translator have short names such as "cross.pattern1".
        ``bwd_hooks``: the same with the gradient at their points, of the mean next-token loss, or
        of ``logit_target``; of several texts, each has its own. What they leave is what backward goes on with; gradients of norms, scores, patterns, embeddings and
        results of heads can only be read.
        """
        input, token_types = unpadded(input, token_types, attention_mask)
        read, stream, layers = self._read_layers(input, source, target, prepend_bos, token_types,
                                                 start_at_layer, stop_at_layer, return_type)
        whole = stream is None and layers == (0, -1)
        if wanted_return(return_type) == "loss" and not (bwd_hooks or self._bwd_hooks) and whole:
            losses = self._handle.losses(read.of_pass, self._forward(fwd_hooks))
            return self._losses(read, read.each_loss(losses), loss_per_token)
        options = self._options(fwd_hooks, bwd_hooks, metrics.Target(logit_target, read), freeze,
                                layers, stream)
        logits = read.each(self._handle.run(read.of_pass, options))
        return self._returned(read, logits, return_type, loss_per_token)

    def _read_layers(self, input, source, target, prepend_bos, token_types, start, stop,
                     return_type):
        """What a pass reads, the stream where it begins with one, and its layers."""
        layers = metrics.layer_range(self, start, stop)
        if layers[1] == self.cfg.n_layers:
            layers = (layers[0], -1)
        if start is None:
            read, stream = self._read(input, source, target, prepend_bos, token_types), None
        else:
            self._refuse_translator("start_at_layer")
            self._refuse_pair(source, target)
            read, stream = stream_of(input, self.cfg.d_model)
        if return_type in ("loss", "both") and (stream is not None or layers[1] >= 0):
            what = "has read no tokens" if stream is not None else "ends before the logits"
            raise InvalidArgument(f"return_type is {return_type!r}, and the pass {what}")
        return read, stream, layers

    def _returned(self, read, logits, return_type, loss_per_token=False):
        if return_type is None:
            return None
        if return_type == "logits":
            return logits
        losses = self._losses(read, read.losses_of(self._handle, logits), loss_per_token)
        if return_type == "loss":
            return losses
        return list(zip(logits, losses)) if read.lengths else (logits, losses)

    @staticmethod
    def _losses(read, losses, per_token):
        if per_token:
            return losses
        return read.of_each(lambda each: float(np.mean(each, dtype=np.float64)), losses)

    def loss(self, input: Optional[Input] = None, per_token: bool = False,
             prepend_bos: Optional[bool] = None, *, source=None, target=None):
        """The mean next-token loss in nats; with ``per_token``, (B, T − 1) of every token but the
        first, of a target (1, T) with its end. Logits of a whole text are never in memory."""
        return self(input, "loss", per_token, prepend_bos, source=source, target=target)

    def loss_fn(self, logits, tokens, per_token: bool = False):
        """:func:`heed.utils.lm_cross_entropy_loss`."""
        return lm_cross_entropy_loss(logits, tokens, per_token)

    @_inputs.naming_arguments
    def run_with_cache(self, input: Optional[Input] = None,
                       names_filter: Union[None, str, Sequence[str], Callable[[str], bool]] = None,
                       return_type: Optional[str] = "logits", remove_batch_dim: bool = False,
                       incl_bwd: bool = False, fwd_hooks: Hooks = (),
                       prepend_bos: Optional[bool] = None, logit_target=None,
                       bwd_hooks: Hooks = (), token_types: Optional[Input] = None,
                       freeze: Sequence[str] = (), start_at_layer: Optional[int] = None,
                       stop_at_layer: Optional[int] = None, attention_mask=None, *, source=None,
                       target=None):
        """(logits, :class:`ActivationCache`) of a pass; of a translator, with a
        :class:`PairActivationCache`.

        Without ``names_filter`` everything is kept where the pass wrote it, and what follows from
        it (scores, patterns, norms, neurons after the activation) is computed when it is read.
        With names, globs ("blocks.*.attn.hook_q"), short names ("pattern", "resid_post3",
        "cross.pattern") or a function of names, only copies of those points are.
        ``incl_bwd``: also their gradients, as ``name + "_grad"``, of the mean next-token loss or
        of ``logit_target``:

        - a list of (position, token id, weight) of logits; of several texts, each has its own;
        - weights of all logits, an array of their shape;
        - weights of values at points, a dict of arrays of their shapes by name: what is
          differentiated is the sum of value times weight. Points are q, k, v, z, neurons, outputs
          and the stream, and "logits";
        - a function of the logits that returns (value, gradient of the logits), such as
          :func:`heed.torch.metric` makes of a function of PyTorch's. ``cache.metric`` is the value.

        ``freeze``: what backward takes for constants, of "pattern" (attention patterns) and "scale"
        (the deviations that norms divide by). With both, value times gradient of a point is what it
        adds to the target along all paths that neurons do not bend (Ameisen et al. 2025).

        ``stop_at_layer``: the pass ends before that block, and gives the stream (B, T, C) that the
        block would read instead of logits. ``start_at_layer``: the pass begins with that block, and
        ``input`` is the stream (B, T, C) that it reads; 0 begins with embeddings, positions
        included. Negative layers count from the end.

        Texts of different lengths give a list of what is returned, and one cache of all: its values
        have the length of the longest, (B, T, …), with zeros after the end of a text (scores −∞).
        ``cache.lengths`` (B,) and ``cache.attention_mask`` (B, T) say which positions are a text's.
        """
        wanted_return(return_type)
        input, token_types = unpadded(input, token_types, attention_mask)
        read, stream, layers = self._read_layers(input, source, target, prepend_bos, token_types,
                                                 start_at_layer, stop_at_layer, return_type)
        found = metrics.Target(logit_target, read)
        options = self._options(fwd_hooks, bwd_hooks, found, freeze, layers, stream)
        points = self._points(names_filter, incl_bwd)
        recorded = _heed.record(self._handle, read.of_pass, points, return_type is not None,
                                options)
        cache = (PairActivationCache if self.is_translator else ActivationCache)(recorded, self)
        cache.metric = found.value
        if remove_batch_dim:
            cache = cache.remove_batch_dim()
        logits = None if return_type is None else read.each(recorded.logits)
        return self._returned(read, logits, return_type), cache

    # Writing

    @_inputs.naming_arguments
    def generate(self, prompt: Input, max_new_tokens: int = 128, *, stop: Sequence[str] = (),
                 shift_context: bool = False, fwd_hooks: Hooks = (),
                 prepend_bos: Optional[bool] = None, stop_at_eos: bool = True,
                 do_sample: bool = True, freq_penalty: float = 0.0,
                 return_type: Optional[str] = None, verbose: bool = False,
                 **sampling: float) -> Any:
        """Continues a prompt token by token with a key-value cache, as it is iterated.

            for step in model.generate("Once upon a time", max_new_tokens=20):
                print(step.text, end="", flush=True)

        Sampling options are those of `heed generate`: ``temperature`` 0 is greedy, the same ``seed``
        gives the same text. ``stop`` are texts that end it. Hooks see the prompt's pass, then one
        position in each step (``hook.first_position`` tells which). Several prompts give a list of
        generations, each with the tokens that it has alone. A translator writes by
        :meth:`translate`.

        TransformerLens's arguments: ``return_type`` "str", "tokens" or "input" (what the prompt is)
        computes all of it and gives prompt and continuation, a text or ids (1, T) [None: the
        :class:`Generation`, as it is iterated]. ``do_sample=False`` is ``temperature=0``,
        ``freq_penalty`` is ``frequency_penalty``. Without ``stop_at_eos``, the token that ends a
        text is never drawn. ``verbose`` prints nothing here either way.
        """
        self._refuse_translator("generate(), which continues a prompt; translate() writes a target")
        if return_type not in (None, "input", "str", "tokens", "tensor"):
            raise InvalidArgument(f"return_type is {return_type!r}, expected 'str', 'tokens', "
                                  "'input' or None")
        if freq_penalty and "frequency_penalty" in sampling:
            raise InvalidArgument("freq_penalty and frequency_penalty are one option, given twice")
        sampling = dict(sampling)
        if freq_penalty:
            sampling["frequency_penalty"] = freq_penalty
        if not do_sample:
            sampling["temperature"] = 0
        hooks = self._forward(fwd_hooks)
        stop = [stop] if isinstance(stop, str) else list(stop)
        how = {"shift_context": bool(shift_context), "ignore_end_of_text": not stop_at_eos}
        rows = self._tokens(prompt, prepend_bos)
        each = [Generation(self._handle.generate(row, max_new_tokens, sampling, stop, how, hooks))
                for row in rows]
        if return_type is None:
            return each if len(each) != 1 else each[0]
        written = [np.concatenate([row, np.array(one.finish().tokens, np.int32)])
                   for row, one in zip(rows, each)]
        is_text = isinstance(prompt, str) or (isinstance(prompt, (list, tuple)) and
                                              any(isinstance(one, str) for one in prompt))
        if return_type == "str" or (return_type == "input" and is_text):
            prompts = [prompt] if isinstance(prompt, str) else prompt
            texts = [(given if is_text else self._decoded(row)) + one.text
                     for given, row, one in zip(prompts, rows, each)]
            return texts if len(texts) != 1 else texts[0]
        alike = len({len(row) for row in written}) == 1
        return np.stack(written) if alike else written

    @_inputs.naming_arguments
    def translate(self, source: Union[str, Sequence[str]], beams: int = 5,
                  length_penalty: float = 1.0, n_best: int = 1, max_length: int = 0,
                  alignment: bool = False,
                  fwd_hooks: Hooks = ()) -> Union[Translation, List[Translation]]:
        """Translates one text, or several together, of a translator.

        ``n_best``: hypotheses of each text, at most ``beams``. ``max_length``: tokens of a
        translation [three for each of the source, and 16]. ``alignment``: also the cross-attention.

        Hooks need ``beams=1``, the most likely token each time: they see the source once, then
        one position of the target in each step (``hook.first_position`` tells which).
        """
        if not self.is_translator:
            raise Unsupported(f"'{self.name}' has one stack: generate() continues its prompts, and "
                              "translate() is of a translator")
        texts = [source] if isinstance(source, str) else list(source)
        hooks = self._forward(fwd_hooks)
        if hooks:
            if beams != 1 or n_best != 1 or alignment:
                raise InvalidArgument(f"hooks see one hypothesis: beams is {beams}, expected 1, "
                                      "with neither n_best nor alignment")
            found = [self._greedy(one, hooks, max_length) for one in texts]
        else:
            found = self._handle.translate(texts, beams, length_penalty, n_best, max_length,
                                           alignment)
        each = [Translation(read, [Hypothesis(*one) for one in hypotheses], attention)
                for read, hypotheses, attention in found]
        return each[0] if isinstance(source, str) else each

    def _greedy(self, text, hooks, max_length):
        source = self._source_ids(text)
        max_length = max_length or 3 * len(source) + 16
        return source.tolist(), self._handle.translate_greedily(source, max_length, hooks), None

    def cross_attention(self, source, target) -> np.ndarray:
        """(L, H, T, S) of any pair of tokens of a translator."""
        return self._handle.cross_attention(_inputs.token_array(source).reshape(-1),
                                            _inputs.token_array(target).reshape(-1))


def load(name_or_directory: str, dtype: Optional[str] = None, cache_dtype: str = "f32",
         pack: bool = False, device: Optional[str] = None) -> Model:
    """See :meth:`Model.load`."""
    return Model.load(name_or_directory, dtype, cache_dtype, pack, device)
