"""Sparse autoencoders and transcoders: loaded, applied, and spliced into passes.

    sae = heed.sae.load("gpt2-small-res-jb/blocks.8.hook_resid_pre")
    logits, cache = model.run_with_cache_with_saes("Mary gave John", saes=[sae])
    cache[sae.name + ".hook_sae_acts_post"]  # (B, T, F)

Names are SAELens's. A dictionary that reads ``blocks.8.hook_resid_pre`` has, after that and a dot,
``hook_sae_input``, ``hook_sae_acts_pre``, ``hook_sae_acts_post``; at the point that it writes,
which is the same one of an autoencoder, ``hook_sae_recons``, ``hook_sae_error`` (with the error
term) and ``hook_sae_output``.
"""

import contextlib
import types
from typing import Any, List, Optional, Sequence, Union, cast

import numpy as np

from . import _heed, _inputs
from .errors import InvalidArgument, NotFound
from .hooks import Hooked, call_with_point, checked, resolved_in_model
from .pictures import Picture, diverging, visible

_FEATURES = "hook_sae_"


def _weight(name, doc, turn=lambda values: values):
    def weight(self):
        try:
            return turn(self._handle.weight(name))
        except NotFound as error:  # so that hasattr() says it is not there
            raise AttributeError(str(error)) from error

    return property(weight, doc=doc)


class SAE:
    """A sparse autoencoder or transcoder. ``cfg`` has SAELens's fields: ``architecture``, ``d_in``,
    ``d_sae``, ``d_out``, ``k``, ``hook_name``, ``hook_names_out``, …"""

    def __init__(self, handle):
        self._handle = handle
        self.cfg = types.SimpleNamespace(**handle.info)

    @property
    def name(self) -> str:
        """The point that it reads, with which the names of its features begin."""
        return self.cfg.hook_name

    def encode(self, x) -> np.ndarray:
        """Activations (…, d_sae) of x (…, d_in)."""
        return self._handle.encode(_rows(x, "x"))

    def decode(self, acts, x=None, point: int = 0) -> np.ndarray:
        """(…, d_out) of activations. ``x``: what was encoded, where the dictionary normalises it or
        has W_skip. ``point``: which of the points that a cross-layer transcoder writes."""
        return self._handle.decode(_rows(acts, "acts"),
                                   np.empty(0, np.float32) if x is None else _rows(x, "x"), point)

    def __call__(self, x) -> np.ndarray:
        """The reconstruction of x, or what a transcoder makes of it."""
        return self.decode(self.encode(x), x)

    def save_model(self, directory: str) -> None:
        """Writes ``cfg.json`` and ``sae_weights.safetensors`` in SAELens's layout."""
        self._handle.save(_inputs.name_or_path(directory))

    W_enc = _weight("W_enc", "(d_in, d_sae)", np.transpose)
    W_dec = _weight("W_dec", "(d_sae, d_out); of a cross-layer transcoder (d_sae, points, d_out)",
                    lambda values: values[:, 0] if values.shape[1] == 1 else values)
    b_enc = _weight("b_enc", "(d_sae)")
    b_dec = _weight("b_dec", "(d_out)")
    b_gate = _weight("b_gate", "(d_sae), of gated ones")
    r_mag = _weight("magnitude", "(d_sae), of gated ones", np.log)
    threshold = _weight("threshold", "(d_sae), of JumpReLU")
    W_skip = _weight("W_skip", "(d_out, d_in), of transcoders with a skip connection")

    def __repr__(self):
        cfg = self.cfg
        kind = "transcoder" if cfg.is_transcoder else "autoencoder"
        written = f" -> {', '.join(cfg.hook_names_out)}" if cfg.is_transcoder else ""
        active = f", k {cfg.k}" if cfg.k else ""
        return (f"heed.sae.SAE({cfg.architecture} {kind}, {cfg.hook_name}{written}, "
                f"{cfg.d_in} -> {cfg.d_sae:,} features{active})")


def _rows(values, what) -> np.ndarray:
    array = np.ascontiguousarray(np.asarray(values), dtype=np.float32)
    if array.ndim == 0:
        raise InvalidArgument(f"{what} is a number, expected an array (…, width)")
    return array


def load_all(path: str, hook_name: Optional[str] = None, hook_name_out: Optional[str] = None,
             norm_scaling_factor: Optional[float] = None) -> List[SAE]:
    """All of a directory: one of SAELens (``cfg.json``, ``sae_weights.safetensors``), one of such
    directories, Gemma Scope's (``params.npz``), or circuit-tracer's transcoders, one for each layer;
    "starter": those that heed carries for this model.

    ``hook_name``, ``hook_name_out``: the points that it reads and writes, where the files do not say
    so, or instead. ``norm_scaling_factor``: of ``normalize_activations: expected_average_only_in``,
    where it was not folded into the weights.
    """
    return [SAE(handle) for handle in
            _heed.SparseDictionary.load(_inputs.name_or_path(path), hook_name or "",
                                        hook_name_out or "", norm_scaling_factor)]


def load(path: str, hook_name: Optional[str] = None, hook_name_out: Optional[str] = None,
         norm_scaling_factor: Optional[float] = None) -> SAE:
    """The one of a directory or file. See :func:`load_all`."""
    found = load_all(path, hook_name, hook_name_out, norm_scaling_factor)
    if len(found) != 1:
        raise InvalidArgument(f"{path!r} holds {len(found)} transcoders: use heed.sae.load_all()")
    return found[0]


_DEFAULTS = {"architecture": "topk", "k": 32, "l1_coefficient": 5.0, "l0_coefficient": 1.0, "lr": 3e-4, "steps": 1000,
             "warmup": 0.05, "decay": 0.2, "dead_after": 1_000_000, "auxiliary_k": 0,
             "auxiliary_coefficient": 1 / 32, "resample_every": 0, "resample_norm": 0.2, "seed": 0}


def _training(d_sae, settings):
    for name in settings:
        if name not in _DEFAULTS:
            raise InvalidArgument(f"there is no setting {name!r}, expected one of "
                                  f"{', '.join(_DEFAULTS)}")
    return {**_DEFAULTS, **settings, "d_sae": d_sae}


class Trainer:
    """Trains a dictionary on rows of your own: ``x`` (N, d_in), and of a transcoder ``y`` (N, d_out)
    too. ``first``, and ``first_targets`` of a transcoder, give the scale and the first ``b_dec``.
    Settings as in :func:`train`."""

    def __init__(self, d_sae: int, first, first_targets=None, hook_name: str = "",
                 hook_name_out: str = "", **settings):
        self._session = _heed.DictionaryTraining(
            _training(d_sae, settings), _rows(first, "first"), _optional(first_targets),
            hook_name, hook_name_out)

    def step(self, x, y=None) -> dict:
        """One step: ``loss``, ``l0``, ``explained_variance``, ``dead_features``, …"""
        return self._session.step(_rows(x, "x"), _optional(y))

    @property
    def sae(self) -> SAE:
        """The dictionary so far."""
        return SAE(self._session.dictionary())


def _optional(values):
    return np.empty(0, np.float32) if values is None else _rows(values, "targets")


def train(model, hook_name: str, d_sae: int, *, file: Optional[str] = None,
          text: Optional[str] = None, out: Optional[str] = None,
          hook_name_out: Optional[str] = None, hook_head_index: Optional[int] = None,
          validation: Optional[str] = None, batch: int = 4096, buffer: int = 1 << 15,
          context_size: int = 128, evaluated_tokens: int = 1 << 14, progress=None,
          **settings) -> types.SimpleNamespace:
    """Trains a dictionary on a model's activations over a text file, or a text: an autoencoder at
    ``hook_name``, or a transcoder from there to ``hook_name_out``. Activations go from passes through
    a buffer of ``buffer`` rows, from which the ``batch`` of a step is drawn; nothing is on disk.

    ``out``: a directory, which gets SAELens's layout. ``progress``: a function of each step's
    numbers. ``validation``: a text file [the text's last 5 %, which it is then not trained on].

    Settings: ``architecture`` "topk" (``k``), "standard" (ReLU with ``l1_coefficient``) or
    "jumprelu" (with ``l0_coefficient``), ``lr``, ``steps``, ``warmup`` and ``decay`` (shares of the steps), ``dead_after`` (rows without activity),
    ``auxiliary_k`` and ``auxiliary_coefficient`` (of the loss of dead features), ``resample_every``
    (steps after which dead features are set anew to rows of a high loss, until ``decay``; 0: never),
    with ``resample_norm`` of the mean norm of the living ones, ``seed``.

    An interrupt stops it, once its steps are saved. Returns ``steps``, ``loss``, ``l0``,
    ``explained_variance``, ``dead_features``, ``tokens``, ``interrupted``, and ``quality``, on the
    validation text: ``loss``, ``loss_with``, ``loss_with_zeros``, ``loss_recovered``, ….
    """
    path = lambda value: "" if value is None else _inputs.name_or_path(value)
    options = {**_training(d_sae, settings), "hook_name": hook_name,
               "hook_name_out": hook_name_out or "",
               "hook_head_index": -1 if hook_head_index is None else hook_head_index,
               "file": path(file), "text": text or "", "validation": path(validation),
               "out": path(out), "batch": batch, "buffer": buffer, "context_size": context_size,
               "evaluated_tokens": evaluated_tokens}
    found = _heed.train_dictionary(model._handle, options, progress)
    if found["quality"] is not None:
        found["quality"] = types.SimpleNamespace(**found["quality"])
    return types.SimpleNamespace(**found)


def evaluate(model, sae: SAE, text: str, tokens: int = 1 << 15,
             context_size: int = 128) -> types.SimpleNamespace:
    """What a dictionary is worth on a text: ``loss`` of the model, ``loss_with`` the dictionary in its
    pass, ``loss_with_zeros`` there, ``loss_recovered``, ``l0``, ``explained_variance``,
    ``used_features``."""
    return types.SimpleNamespace(**_heed.evaluate_dictionary(model._handle, sae._handle, text, tokens,
                                                             context_size))


class Context:
    """A place in a text where a feature is active: ``tokens`` around it, the ``activations`` at each,
    and which of them it is, ``peak``."""

    def __init__(self, model, position, activation, tokens, activations, peak):
        self.position, self.activation = position, activation
        self.tokens, self.activations, self.peak = tokens, np.array(activations, np.float32), peak
        self.str_tokens = model._pieces(np.array(tokens, np.int32))

    def __repr__(self):
        around = [f"[{piece}]" if at == self.peak else piece
                  for at, piece in enumerate(self.str_tokens)]
        return f"{self.activation:.3g}  {''.join(around)!r}"


class Feature(Picture):
    """What a feature is: ``density`` (share of tokens where it is active), ``mean``, ``largest``, its
    strongest ``contexts``, and the logits that it ``raises`` and ``lowers``, (token, text, score)."""

    def __init__(self, model, index, density, mean, largest, contexts, raised, lowered):
        self.index, self.density, self.mean, self.largest = index, density, mean, largest
        self.contexts = [Context(model, *each) for each in contexts]
        named = lambda pairs: [(token, model.to_single_str_token(token), score)
                               for token, score in pairs]
        self.raises, self.lowers = named(raised), named(lowered)

    def __repr__(self):
        lines = [f"feature {self.index}: active at {100 * self.density:.3g} % of tokens, at most "
                 f"{self.largest:.3g}"]
        for what, logits in (("raises", self.raises), ("lowers", self.lowers)):
            if logits:
                lines.append(f"  {what} " + " ".join(repr(text) for _, text, _ in logits))
        return "\n".join(lines + [f"  {context!r}" for context in self.contexts])

    def picture(self) -> str:
        largest = max((float(context.activations.max()) for context in self.contexts), default=1.0)
        rows = ""
        for context in self.contexts:
            tokens = "".join(
                f'<span class="token" title="{value:.3g}" style="background:'
                f'{diverging(float(value), 2 * largest)}">{visible(piece)}</span>'
                for piece, value in zip(context.str_tokens, context.activations))
            rows += f'<tr><td>{context.activation:.3g}</td><td class="word">{tokens}</td></tr>'
        logits = "".join(
            f"<div>{what}: " + " ".join(f'<span class="token" title="{score:.3g}">{visible(text)}</span>'
                                        for _, text, score in all_of) + "</div>"
            for what, all_of in (("raises", self.raises), ("lowers", self.lowers)) if all_of)
        return (f"<table><caption>Feature {self.index}: active at {100 * self.density:.3g} % of the "
                f"tokens, at most {self.largest:.3g}</caption>{rows}</table>{logits}")


class Survey(Picture):
    """Features of a dictionary over a text: ``densities`` (d_sae,) of all of them, and a list of
    :class:`Feature`."""

    def __init__(self, tokens, densities, features):
        self.tokens, self.densities, self.features = tokens, densities, features

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        return self.features[index]

    def __repr__(self):
        return "\n".join(repr(feature) for feature in self.features)

    def picture(self) -> str:
        return "".join(feature.picture() for feature in self.features)


def features(model, sae: SAE, text: str, features: Sequence[int] = (), count: int = 10,
             top: int = 8, tokens: int = 1 << 16, context_size: int = 128) -> Survey:
    """What features are, over the first ``tokens`` of a text: these, or the ``count`` densest. ``top``:
    contexts of each, at most one of a window of ``context_size`` tokens, and logits at either end,
    where the dictionary writes the stream."""
    found = _heed.survey_features(model._handle, sae._handle, text,
                                  {"features": list(features), "count": count, "top": top,
                                   "tokens": tokens, "context_size": context_size})
    return Survey(found[0], found[1], [Feature(model, *report) for report in found[2]])


class _Splice:
    """Dictionaries in a model's passes, while they are attached."""

    def __init__(self, model, saes: Sequence[SAE], error: bool, gradients: bool):
        self._model = model
        self._splice = _heed.Splice(model._handle, [sae._handle for sae in saes], error)
        self.gradients = gradients
        self._kept: List[str] = []

    @property
    def names(self) -> List[str]:
        return self._splice.names

    def resolved(self, hooks, wrap):
        """As hooks.resolved: those at features are called within, the others beside."""
        plain, own = [], []
        for where, function in checked(hooks):
            if isinstance(where, str) and _FEATURES in where:
                own.append((where, wrap(function)))
                continue
            plain.append((where, function))
            if callable(where):
                own += [(name, wrap(function)) for name in self.names if where(name)]
        pairs = resolved_in_model(self._model, plain, wrap)
        if wrap is call_with_point:
            self._splice.set_hooks(own)
            return pairs + self._splice.hooks()
        self._splice.set_gradient_hooks(own)
        wanted = own or pairs or self.gradients
        return self._splice.gradient_hooks() + pairs if wanted else pairs

    def keep(self, names) -> None:
        self._kept = list(names)
        self._splice.keep(self._kept)

    def kept(self):
        found = {}
        for name in self._kept:
            with contextlib.suppress(NotFound):
                found[name] = self._splice.kept(name)
        return found


class WithSaes(Hooked):
    """What a model does with dictionaries."""

    _splice: Optional[_Splice] = None

    @contextlib.contextmanager
    def saes(self, saes: Union[SAE, Sequence[SAE]] = (), use_error_term: bool = False,
             incl_bwd: bool = False):
        """Puts dictionaries into all passes of a ``with`` block, in place of what stands at the
        points that they write.

        ``use_error_term``: adds what they miss, so that the pass is the model's own until a feature
        is changed. ``incl_bwd``: gradients are wanted that pass through them; with ``bwd_hooks``
        they do in any case. The error term is a constant of the backward pass.
        """
        saes = [saes] if isinstance(saes, SAE) else list(saes)
        if self._splice is not None:
            raise InvalidArgument("there are dictionaries in the model's passes already")
        self._splice = _Splice(self, saes, use_error_term, incl_bwd) if saes else None
        try:
            yield self
        finally:
            self._splice = None

    def run_with_saes(self, input=None, saes=(), use_error_term: bool = False, **arguments):
        """Calls the model with dictionaries in its pass: see :meth:`saes`."""
        with self.saes(saes, use_error_term):
            return cast(Any, self)(input, **arguments)

    def run_with_hooks_with_saes(self, input=None, saes=(), use_error_term: bool = False,
                                 **arguments):
        """:meth:`run_with_hooks` with dictionaries, also with hooks at their features. A hook that
        changes features needs a backward hook at the same point where gradients pass it, which
        turns the gradient of what it left into that of what it was given."""
        with self.saes(saes, use_error_term):
            return cast(Any, self).run_with_hooks(input, **arguments)

    def run_with_cache_with_saes(self, input=None, saes=(), use_error_term: bool = False,
                                 incl_bwd: bool = False, **arguments):
        """:meth:`run_with_cache` with dictionaries, whose features are kept too."""
        with self.saes(saes, use_error_term, incl_bwd):
            return cast(Any, self).run_with_cache(input, incl_bwd=incl_bwd, **arguments)

    @property
    def hook_names(self) -> List[str]:
        """The points, in the order of a pass, and those of features while dictionaries are there."""
        names = super().hook_names
        return names if self._splice is None else names + self._splice.names

    def _points(self, names_filter, incl_bwd) -> List[str]:
        if self._splice is None:
            return super()._points(names_filter, incl_bwd)
        own = self._splice.names
        if names_filter is None:
            features, plain = own, None
        elif callable(names_filter):
            features = [name for name in own if names_filter(name)]
            plain = [name for name in super().hook_names if names_filter(name)]
        else:
            names = [names_filter] if isinstance(names_filter, str) else list(names_filter)
            features = [full for name in names if _FEATURES in name
                        for full in self._feature_names(name)]
            plain = [name for name in names if _FEATURES not in name]
        if incl_bwd:
            features = features + [name + "_grad" for name in features
                                   if not name.endswith("hook_sae_error")]
        self._splice.keep(features)
        if plain == []:  # none would be all: what the unembedding reads costs nothing
            plain = ["unembed.hook_in"]
        return super()._points(plain, incl_bwd)

    def _feature_names(self, name):
        ending = "_grad" if name.endswith("_grad") else ""
        return [full + ending for full in
                self._splice._splice.names_like(name[:len(name) - len(ending)])]
