"""PyTorch's derivatives of what is around a pass, and heed's of the pass itself."""

import numpy as np
import torch

from ._inputs import float_array
from .errors import InvalidArgument


def metric(function):
    """A function of PyTorch's, from logits (B, T, V) to one number, as a ``logit_target``: its
    gradient is the one that torch computes. Of texts of different lengths, it is given a list of
    (1, T, V)."""

    def call(logits):
        parts = logits if isinstance(logits, list) else [logits]
        leaves = [torch.from_numpy(np.array(part)).requires_grad_() for part in parts]
        value = function(leaves if isinstance(logits, list) else leaves[0])
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise InvalidArgument(f"the metric returned {type(value).__name__}, expected a tensor "
                                  "of one number")
        gradients = torch.autograd.grad(value, leaves, allow_unused=True)
        arrays = [np.zeros(leaf.shape, np.float32) if gradient is None else gradient.numpy()
                  for leaf, gradient in zip(leaves, gradients)]
        return float(value), arrays if isinstance(logits, list) else arrays[0]

    return call


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, names, *tensors):
        ctx.run, ctx.names = run, names
        ctx.arrays = [float_array(tensor.detach().numpy(), name)
                      for name, tensor in zip(names, tensors)]
        ctx.count = len(tensors)
        return torch.from_numpy(np.array(run(ctx.arrays)))

    @staticmethod
    def backward(ctx, gradient):
        found = ctx.run(ctx.arrays, gradient.contiguous().numpy())
        gradients = [torch.from_numpy(found[name]) for name in ctx.names]
        return (None, None, *gradients, *[None] * (ctx.count - len(gradients)))


def logits(model, input, replace=None, add=None, fwd_hooks=(), freeze=()):
    """The model's logits (B, T, V) of texts of one length, as a tensor that torch differentiates by
    tensors at points: those of ``replace`` stand in for the values of their points, those of
    ``add`` are added to them. Both are dicts by the names of points (q, k, v, z, neurons, outputs
    and the stream), in the shapes of their values.

    The tensors may come out of any computation of torch's, and the logits go into any other: a
    learned steering vector, a module that is trained to stand in for a part of the model. ``backward()``
    takes a second pass, which calls the hooks that stay (:meth:`heed.Model.add_hook`) of both
    directions. ``freeze``: as in :meth:`heed.Model.run_with_cache`.
    """
    given = {**(replace or {}), **(add or {})}
    names = [model.points_named(name) for name in given]
    for name, found in zip(given, names):
        if len(found) != 1:
            raise InvalidArgument(f"{name!r} names {len(found)} points, expected one")
    names = [found[0] for found in names]
    if len(set(names)) != len((replace or {})) + len((add or {})):
        raise InvalidArgument("a point is replaced or added to once")
    replaced = set(names[:len(replace or {})])
    tokens = model.to_tokens(input) if isinstance(input, (str, list)) else input
    if isinstance(tokens, list):
        raise InvalidArgument("the texts have different lengths, expected one")

    def run(arrays, d_logits=None):
        found = {}

        def forward(values, hook):
            values[...] = values + at[hook.name] if hook.name not in replaced else at[hook.name]

        def backward(gradient, hook):
            found[hook.name] = gradient.copy()
            if hook.name in replaced:
                gradient[...] = 0

        at = dict(zip(names, arrays))
        hooks = [*fwd_hooks, *((name, forward) for name in names)]
        if d_logits is None:
            return model.run_with_hooks(tokens, hooks)
        model.run_with_hooks(tokens, hooks, [(name, backward) for name in names],
                             logit_target=d_logits, freeze=freeze)
        return found

    if given:
        return _Pass.apply(run, names, *given.values())
    # Nothing to differentiate by but what hooks of backward see.
    return _Pass.apply(run, [], torch.zeros((), requires_grad=True))
