"""What a pass computed, by TransformerLens's names."""

import os
from collections.abc import Mapping
from typing import Dict, Iterator, Optional, Tuple, Union

import numpy as np

from . import _files, _heed, _inputs
from .device import DeviceArray
from .errors import InvalidArgument, NotFound
from .names import get_act_name
from .stored_pass import META, PREFIX, GivenPass, NoModel, StoredPass


class LazyAttention(np.lib.mixins.NDArrayOperatorsMixin):
    """Scores or a pattern (B, H, T, S) of which only what is sliced is computed, from queries, keys
    and the log-sum-exp of each row, exactly as in the pass.

    ``pattern[0, 3]`` is one head's plane, ``pattern[0, 3, -1]`` one query's row. Anything that
    takes an array takes it too, and then computes all of it.
    """

    def __init__(self, recorded, name: str, without_batch: bool = False):
        self._recorded = recorded
        self._name = name
        self._without_batch = without_batch

    @property
    def name(self) -> str:
        return self._name

    @property
    def shape(self) -> Tuple[int, ...]:
        shape = tuple(self._recorded.shape(self._name))
        return shape[1:] if self._without_batch else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        if any(part is Ellipsis for part in parts):
            at = next(i for i, part in enumerate(parts) if part is Ellipsis)
            fill = (slice(None),) * (self.ndim - len(parts) + 1)
            parts = parts[:at] + fill + parts[at + 1:]
        if self._without_batch:
            parts = (0,) + parts
        if len(parts) > 4:
            raise InvalidArgument(f"'{self._name}' has {self.ndim} dimensions, not {len(key)}")
        if not all(isinstance(part, (int, np.integer, slice)) for part in parts):
            return np.asarray(self)[key]
        parts += (slice(None),) * (4 - len(parts))
        chosen = [self._chosen(part, size, dimension) for dimension, (part, size) in
                  enumerate(zip(parts, self._recorded.shape(self._name)))]
        ranges = [(min(indices), max(indices) + 1) if indices else (0, 0)
                  for indices in chosen[2:]]
        if not chosen[0] or not chosen[1]:
            return np.empty([len(indices) for indices, part in zip(chosen, parts)
                             if isinstance(part, slice)], np.float32)
        tile = self._recorded.attention(self._name, chosen[0], chosen[1], *ranges)
        steps = [self._step(indices) for indices in chosen[2:]]
        return tile[tuple(0 if not isinstance(part, slice) else slice(None)
                          for part in parts[:2]) +
                    tuple(0 if not isinstance(part, slice) else step
                          for part, step in zip(parts[2:], steps))]

    def _chosen(self, part, size, dimension):
        if isinstance(part, slice):
            return list(range(*part.indices(size)))
        index = int(part)
        if not -size <= index < size:
            what = ("sequence", "head", "query", "key")[dimension]
            raise IndexError(f"{what} {index} does not exist in '{self._name}': there are {size}")
        return [index % size]

    @staticmethod
    def _step(indices):
        """Of a range that a tile covers from its smallest to its largest index."""
        return slice(None, None, indices[1] - indices[0] if len(indices) > 1 else 1)

    def __array__(self, dtype=None, copy=None):
        array = self._recorded.at(self._name)
        array = array[0] if self._without_batch else array
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        arrays = [np.asarray(value) if isinstance(value, LazyAttention) else value
                  for value in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __dlpack__(self, **options):
        return np.array(self).__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __repr__(self):
        return f"LazyAttention({self._name!r}, shape={self.shape})"


def _mask(lengths) -> np.ndarray:
    return (np.arange(lengths.max())[None] < lengths[:, None]).astype(np.int64)


def _restored(arrays, model=None):
    kinds = {kind.__name__: kind for kind in (ActivationCache, PairActivationCache)}
    kind = kinds.get(str(arrays.get(PREFIX + "kind")))
    if kind is None or any(PREFIX + key not in arrays for key in META):
        raise InvalidArgument("these are not the activations of a cache of heed's")
    model = NoModel() if model is None else model
    return kind(StoredPass(arrays, model), model, without_batch=not bool(arrays[PREFIX + "batch"]))


def load_cache(path, model=None):
    """What :meth:`ActivationCache.save` wrote. With the ``model``, layers may be counted from the
    end, and stacks of the residual stream be taken."""
    with np.load(os.fspath(path), allow_pickle=False) as arrays:
        return _restored({name: arrays[name] for name in arrays.files}, model)


class RecordedActivations(Mapping):
    """The activations of one pass by name: NumPy views of heed's memory, (B, T, …), that outlive
    the model and the cache; scores and patterns are :class:`LazyAttention`."""

    def __init__(self, recorded, model, without_batch: bool = False):
        self._recorded = recorded
        self.model = model
        self.has_batch_dim = not without_batch
        self.metric = None  # the value of the function that was differentiated, if it was one
        # Features of dictionaries that were spliced into the pass, by name: (B, T, F).
        splice = getattr(model, "_splice", None)
        self._features = {} if splice is None else splice.kept()

    def _name(self, key) -> str:
        raise NotImplementedError

    def __getitem__(self, key) -> Union[np.ndarray, LazyAttention]:
        if isinstance(key, str) and key in self._features:
            values = self._features[key]
            return values if self.has_batch_dim else values[0]
        name = self._name(key)
        if self._recorded.is_lazy(name):
            return LazyAttention(self._recorded, name, not self.has_batch_dim)
        values = self._recorded.at(name)
        return values if self.has_batch_dim else values[0]

    def on_device(self, key) -> DeviceArray:
        """An activation, as ``cache[key]``, in the memory of the GPU that the model computes on:
        (B, T, …), for ``torch.from_dlpack`` and others.

        Of a pass without ``names_filter`` and hooks, q, k, v, z, the stream, neurons before the
        activation and what the unembedding reads are where the pass wrote them, without a copy, and
        do not come to the processor; of texts of different lengths they are copied there, padded. Scores,
        patterns and logits are computed on the GPU, whole. All else is copied from the processor: norms,
        neurons after the activation, what heads and layers add to the stream, and all of passes with hooks
        or a ``names_filter``.

        Raises :class:`~heed.errors.InvalidArgument` where the model is on the processor, and for a cache
        that was stored.
        """
        if isinstance(key, str) and key in self._features:
            raise InvalidArgument(f"'{key}' is on the processor, as features of dictionaries are: take "
                                  "cache[name]")
        name = self._name(key)
        if not isinstance(self._recorded, _heed.Recorded):
            raise InvalidArgument(f"'{name}' is on the processor: the cache was stored, or made of arrays; "
                                  "take cache[name]")
        values = DeviceArray(_heed.activation_on_device(self._recorded, name))
        return values if self.has_batch_dim else values[0]

    def __contains__(self, key) -> bool:
        if isinstance(key, str) and key in self._features:
            return True
        try:
            return self._recorded.has(self._name(key))
        except Exception:
            return False

    def keys(self):
        return [*self._recorded.names, *self._features]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._recorded.names) + len(self._features)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the cache holds, without logits."""
        return self._recorded.bytes

    @property
    def lengths(self) -> np.ndarray:
        """(B,): tokens of each text, of a translator of its target. Values at later positions
        are no text's: 0, of scores −∞."""
        return np.array(self._recorded.lengths, np.int64)

    @property
    def attention_mask(self) -> np.ndarray:
        """(B, T): 1 where a position is one of a text, 0 after its end."""
        return _mask(self.lengths)

    def stack_activation(self, activation_name: str, layer: int = -1,
                         sublayer_type: Optional[str] = None) -> np.ndarray:
        """An activation of every layer before ``layer`` [all], (layers, B, T, …)."""
        layers = self.model.cfg.n_layers if layer is None or layer == -1 else int(layer)
        if not 1 <= layers <= self.model.cfg.n_layers:
            raise InvalidArgument(f"layer is {layer}, expected 1 to {self.model.cfg.n_layers}, or -1")
        kind = () if sublayer_type is None else (sublayer_type,)
        return np.stack([np.asarray(self[(activation_name, one, *kind)]) for one in range(layers)])

    @property
    def cache_dict(self) -> Dict[str, Union[np.ndarray, LazyAttention]]:
        """The activations by their full names, as a dict."""
        return {name: self[name] for name in self.keys()}

    # Files

    def save(self, path) -> None:
        """Writes all activations, scores and patterns computed whole, as an .npz file that
        :func:`heed.load_cache` and NumPy read. An existing file is replaced once it is complete."""
        with _files.replaced(path) as file:
            np.savez(file, **self._contents())

    def _contents(self):
        """What a stored cache is made of again."""
        recorded = self._recorded
        kept = {name: np.asarray(LazyAttention(recorded, name) if recorded.is_lazy(name)
                                 else recorded.at(name)) for name in recorded.names}
        kept.update({name: np.asarray(values) for name, values in self._features.items()})
        for key in META:
            kept[PREFIX + key] = np.array(getattr(recorded, key))
        kept[PREFIX + "kind"] = np.array(type(self).__name__)
        kept[PREFIX + "batch"] = np.array(self.has_batch_dim)
        kept[PREFIX + "of_pass"] = np.array(getattr(recorded, "of_pass", True))
        return kept

    def __reduce__(self):
        return _restored, (self._contents(),)

    def remove_batch_dim(self):
        """The same cache of one sequence, whose values lack the first dimension."""
        if self._recorded.sequences != 1:
            raise InvalidArgument(f"the batch has {self._recorded.sequences} sequences: only that "
                                  "of one can be removed")
        alone = type(self)(self._recorded, self.model, without_batch=True)
        alone.metric = self.metric
        alone._features = self._features
        return alone

    @staticmethod
    def _parts(key):
        """Name, layer and what else a key says; None where it does not."""
        if isinstance(key, str):
            return key, None, None
        if not isinstance(key, tuple) or not key or not isinstance(key[0], str) or len(key) > 3:
            raise InvalidArgument(f"a key is a name, or (name, layer), not {key!r}")
        return key + (None,) * (3 - len(key))

    @staticmethod
    def _layer_of(layer, layers):
        """Counted from the end where it is negative."""
        if not isinstance(layer, (int, np.integer)):
            return layer
        if not -layers <= layer < layers:
            raise NotFound(f"layer {layer} does not exist: the model has layers 0 to {layers - 1}")
        return int(layer) % layers


class ActivationCache(RecordedActivations):
    """The activations of one pass of a model.

    Keys are TransformerLens's: ``cache["blocks.3.attn.hook_pattern"]``, ``cache["pattern", 3]``,
    ``cache["normalized", 3, "ln2"]``, ``cache["resid_post", -1]``. Values are NumPy views of
    heed's memory, (B, T, …); scores and patterns are :class:`LazyAttention`. They outlive the
    model and the cache.

    ``ActivationCache(arrays, model)`` is one of arrays (B, T, …) by the names of points, such as those
    that hooks collected: gradients too, whose stacks are those of the same parts.
    """

    def __init__(self, recorded, model, without_batch: bool = False):
        if isinstance(recorded, Mapping):
            recorded = GivenPass(recorded, model)
        super().__init__(recorded, model, without_batch)

    @property
    def _pass(self):
        """As heed takes it."""
        recorded = self._recorded
        return recorded.as_heeds() if isinstance(recorded, StoredPass) else recorded

    def _name(self, key) -> str:
        name, layer, kind = self._parts(key)
        if not isinstance(key, str):
            gradient = name.endswith("_grad")
            plain = get_act_name(name[:-5] if gradient else name,
                                 self._layer_of(layer, self.model.cfg.n_layers), kind)
            name = plain + ("_grad" if gradient else "")
        if self._recorded.has(name):
            return name
        suffix = "_grad" if name.endswith("_grad") else ""
        full = get_act_name(name[:len(name) - len(suffix)]) + suffix
        return full if self._recorded.has(full) else self._recorded.full_name(name)

    @property
    def tokens(self) -> np.ndarray:
        """The token ids of the pass, (B, T): −1 after the end of a text."""
        return np.array(self._recorded.tokens, np.int32).reshape(self._recorded.sequences, -1)

    # Stacks of the residual stream

    def _stack(self, stack, layer, mlp_input, apply_ln, pos_slice, return_labels, recompute_ln=False):
        """What was asked for of a stack and its labels."""
        values, labels = stack
        if apply_ln:
            values = _heed.normalised_stack(self._pass, values, self._layer(layer), mlp_input,
                                            self._positions(pos_slice), recompute_ln)
        values = self._sliced(values, pos_slice)
        return (values, labels) if return_labels else values

    def _sliced(self, values, pos_slice):
        """(parts, B, P, C) without the dimensions that were not asked for."""
        if isinstance(pos_slice, (int, np.integer)):
            values = values[:, :, 0]
        return values if self.has_batch_dim else values[:, 0]

    def _positions(self, pos_slice):
        if pos_slice is None:
            return []
        if isinstance(pos_slice, (int, np.integer)):
            return [int(pos_slice)]
        count = self._recorded.positions
        if isinstance(pos_slice, (tuple, slice)):
            part = pos_slice if isinstance(pos_slice, slice) else slice(*pos_slice)
            found = list(range(*part.indices(count)))
            if not found:
                raise InvalidArgument(f"the slice {pos_slice!r} of {count} positions is empty")
            return found
        return [int(position) for position in pos_slice]

    def _whole(self, stack, pos_slice):
        """A stack as heed takes it, (parts, B, P, C)."""
        stack = _inputs.float_array(stack, "the stack")
        if not self.has_batch_dim:
            stack = stack[:, None]
        if isinstance(pos_slice, (int, np.integer)):
            stack = stack[:, :, None]
        return stack

    def _layer(self, layer):
        return -1 if layer is None else int(layer)

    def accumulated_resid(self, layer: Optional[int] = None, incl_mid: bool = False,
                          apply_ln: bool = False, pos_slice=None, mlp_input: bool = False,
                          return_labels: bool = False):
        """The stream before every layer up to ``layer``, and after the last: (parts, B, P, C).

        With ``apply_ln`` as the norm before ``layer`` (None: the final norm) scales it, without
        gain and bias: the final norm as if each part were the stream, by its own statistics, and
        that before a layer by those of the pass. Parallel blocks have no stream between
        attention and feed-forward: there ``incl_mid`` and ``mlp_input`` add no part.
        ``pos_slice``: a position, (begin, end), a slice or positions [all]. ``return_labels``:
        also ["0_pre", …, "final_post"].
        """
        stack = _heed.accumulated_residual(self._pass, self._layer(layer), mlp_input,
                                           self._positions(pos_slice), incl_mid)
        is_final = self._layer(layer) in (-1, self.model.cfg.n_layers)
        return self._stack(stack, layer, mlp_input, apply_ln, pos_slice, return_labels, is_final)

    def decompose_resid(self, layer: Optional[int] = None, mlp_input: bool = False,
                        mode: str = "all", apply_ln: bool = False, pos_slice=None,
                        return_labels: bool = False):
        """What wrote to the stream before ``layer``: embeddings, and the outputs of attention
        and feed-forward layers ("attn", "mlp" or "all" of them), (parts, B, P, C)."""
        stack = _heed.decomposed_residual(self._pass, self._layer(layer), mlp_input,
                                          self._positions(pos_slice), mode)
        return self._stack(stack, layer, mlp_input, apply_ln, pos_slice, return_labels)

    def stack_head_results(self, layer: int = -1, return_labels: bool = False,
                           incl_remainder: bool = False, pos_slice=None, apply_ln: bool = False):
        """What each head wrote to the stream before ``layer`` (-1: after the last), "L0H0" first;
        with ``incl_remainder``, what else the stream holds: (parts, B, P, C)."""
        stack = _heed.head_results(self._pass, self._layer(layer), self._positions(pos_slice),
                                   incl_remainder)
        return self._stack(stack, layer, False, apply_ln, pos_slice, return_labels)

    def get_neuron_results(self, layer: int, neuron_slice=None, pos_slice=None) -> np.ndarray:
        """What each neuron of a layer writes to the stream, (B, P, neurons, C)."""
        layer = self._layer_of(layer, self.model.cfg.n_layers)
        values, _ = _heed.neuron_results(self._pass, layer, layer + 1, self._neurons(neuron_slice),
                                         self._positions(pos_slice), False)
        values = np.moveaxis(self._sliced(values, pos_slice), 0, -2)
        return values[..., 0, :] if isinstance(neuron_slice, (int, np.integer)) else values

    def _neurons(self, neuron_slice):
        if neuron_slice is None:
            return []
        found = np.atleast_1d(np.arange(self.model.cfg.d_mlp)[neuron_slice]).tolist()
        if not found:
            raise InvalidArgument(f"the slice {neuron_slice!r} of {self.model.cfg.d_mlp} neurons is empty")
        return found

    def stack_neuron_results(self, layer: int, pos_slice=None, neuron_slice=None,
                             return_labels: bool = False, incl_remainder: bool = False,
                             apply_ln: bool = False):
        """What each neuron wrote to the stream before ``layer`` (-1: after the last), "L0N0"
        first; with ``incl_remainder``, what else the stream holds: (parts, B, P, C)."""
        stack = _heed.neuron_results(self._pass, 0, self._layer(layer), self._neurons(neuron_slice),
                                     self._positions(pos_slice), incl_remainder)
        return self._stack(stack, layer, False, apply_ln, pos_slice, return_labels)

    def get_full_resid_decomposition(self, layer: Optional[int] = None, mlp_input: bool = False,
                                     expand_neurons: bool = True, apply_ln: bool = False,
                                     pos_slice=None, return_labels: bool = False):
        """All that the stream before ``layer`` is the sum of: heads, neurons (or feed-forward
        layers), embeddings, and the biases that attention, and feed-forward layers whose neurons
        stand apart, add: (parts, B, P, C)."""
        stack = _heed.full_decomposition(self._pass, self._layer(layer), mlp_input,
                                         self._positions(pos_slice), expand_neurons)
        return self._stack(stack, layer, mlp_input, apply_ln, pos_slice, return_labels)

    def apply_ln_to_stack(self, residual_stack, layer: Optional[int] = None,
                          mlp_input: bool = False, pos_slice=None,
                          recompute_ln: bool = False) -> np.ndarray:
        """A stack as the norm before ``layer`` (None: the final norm) scales the stream, with the
        scale of the pass: centred, where the norm centres, and divided. ``recompute_ln``: with
        the scale of each part itself, of the final norm."""
        values = _heed.normalised_stack(
            self._pass, self._whole(residual_stack, pos_slice), self._layer(layer), mlp_input,
            self._positions(pos_slice), recompute_ln)
        return self._sliced(values, pos_slice)

    def logit_attrs(self, residual_stack, tokens, incorrect_tokens=None,
                    pos_slice=None) -> np.ndarray:
        """What each part of a stack (parts, B, P, C) contributes to the logit of a token, or to
        its difference to another one's, with the final norm's scale held: (parts, B, P).

        ``tokens``: a text that is one token, an id, or one for each sequence.
        """
        values = _heed.logit_contributions(
            self._pass, self._whole(residual_stack, pos_slice), self._token_ids(tokens),
            [] if incorrect_tokens is None else self._token_ids(incorrect_tokens),
            self._positions(pos_slice))
        return self._sliced(values, pos_slice)

    def _token_ids(self, tokens):
        if isinstance(tokens, str):
            return [self.model.to_single_token(tokens)]
        if np.ndim(tokens) == 0:
            tokens = [tokens]
        if any(isinstance(token, str) for token in tokens):
            return [self.model.to_single_token(token) for token in tokens]
        return [int(token) for token in _inputs.token_array(tokens).reshape(-1)]

    def __repr__(self):
        return (f"ActivationCache of {self._recorded.sequences} x {self._recorded.positions} "
                f"tokens with {len(self)} activations")


class PairActivationCache(RecordedActivations):
    """The activations of a translator's pass over a source and a target.

    Keys are names of points and what `heed trace` takes for them: ``cache["encoder.1.hook_resid_post"]``,
    ``cache["cross.pattern", 1]``, ``cache["decoder.z", -1]``, ``cache["decoder.normalized", 0, "ln3"]``.
    Points of the encoder have the M positions of the source, those of the decoder the T of the
    target, scores and patterns of cross-attention are (B, H, T, M).
    """

    def _name(self, key) -> str:
        name, layer, kind = self._parts(key)
        if not isinstance(key, str):
            stack, _, point = name.partition(".")
            plain = point[:-5] if point.endswith("_grad") else point
            cfg = self.model.encoder_cfg if stack == "encoder" else self.model.cfg
            layer = self._layer_of(layer, cfg.n_layers)
            if kind is not None:
                name = f"{stack}.{layer}.{kind}.hook_{plain}"
            elif layer is not None:
                name = f"{stack}.{plain}{layer}"
            else:
                name = f"{stack}.{plain}" if point else stack
            name += point[len(plain):]
        return name if self._recorded.has(name) else self._recorded.full_name(name)

    @property
    def source_tokens(self) -> np.ndarray:
        """(B, M), that the encoder read: −1 after the end of a source."""
        return np.array(self._recorded.source_tokens, np.int32).reshape(self._recorded.sequences, -1)

    @property
    def source_lengths(self) -> np.ndarray:
        """(B,): tokens of each source."""
        return np.array(self._recorded.source_lengths, np.int64)

    @property
    def source_mask(self) -> np.ndarray:
        """(B, M): 1 where a position is one of a source, 0 after its end."""
        return _mask(self.source_lengths)

    @property
    def target_tokens(self) -> np.ndarray:
        """(B, T), that the decoder read: its start first, −1 after the end of a target."""
        return np.array(self._recorded.tokens, np.int32).reshape(self._recorded.sequences, -1)

    def __repr__(self):
        return (f"PairActivationCache of {self.source_tokens.size} and {self.target_tokens.size} "
                f"tokens with {len(self)} activations")
