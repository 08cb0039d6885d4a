"""Models whose weights are changed so that they are easier to interpret, and predict the same."""

import dataclasses
import tempfile

from . import _heed
from .errors import InvalidArgument


def load(kind, name, dtype, cache_dtype, pack, flags, refactors, device):
    """A model of the class ``kind``, with the weights that ``flags`` and ``refactors`` ask for."""
    device = None if device is None else str(device)
    model = kind.load(name, dtype, cache_dtype, pack, device)
    wanted = {value for value in flags.values() if value is not None}
    if wanted == {True, False}:
        raise InvalidArgument("fold_ln, center_writing_weights, center_unembed and fold_value_biases are "
                              f"done together: expected all or none of them, not {flags}")
    if True in wanted:
        model._refuse_translator("processed weights")
        with tempfile.TemporaryDirectory() as folder:
            _heed.save_processed(model._handle, folder)
            processed = kind.load(folder, dtype, cache_dtype, pack, device)
        processed.cfg = dataclasses.replace(processed.cfg, model_name=model.cfg.model_name)
        model = processed
    if refactors:
        model._refuse_translator("refactored weights")
        _heed.refactor_heads(model._handle)
    return model
