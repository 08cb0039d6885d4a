"""heed: transformers opened up, at native speed.

    import heed
    model = heed.load("starter")
    logits, cache = model.run_with_cache("Once upon a time")
    cache["pattern", 3][0, 2]

Errors are those of :mod:`heed.errors`. Docs: docs/python.md.
"""

import importlib
import os


def _require_main_interpreter():
    """NumPy and the extension keep state of a process, which subinterpreters would share."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError("heed cannot be imported in a subinterpreter: import it in the main "
                              "interpreter, or in another process")
        return


_require_main_interpreter()

import atexit

from . import circuits, errors, evals, explain, graphs, hook_points, interventions, microworld, patching, sae, utils
from . import _heed
from ._heed import __version__, allow_integer_prompts, f32_products, set_f32_products, set_threads, threads
from .cache import ActivationCache, LazyAttention, PairActivationCache, load_cache
from .device import DeviceArray
from .errors import Error
from .explain import (attribute_logit, attribute_tokens, detect_head, heads, lens, nearest_words,
                      next_words, show_attention, show_tokens)
from .factored import FactoredMatrix
from .generation import Generation, Step
from .hooks import HookPoint
from .model import Config, Model, load
from .names import get_act_name
from .reading import Read, Unread, UnreadWord
from .tokenizer import Tokenizer
from .training import (Evaluation, TaskEvaluation, Training, TrainingStep, evaluate, evaluate_task,
                       train)
from .translation import Hypothesis, Translation

HookedTransformer = Model  # TransformerLens's name
Translator = Model  # the name of earlier releases for a model of an encoder and a decoder


def __getattr__(name):
    """heed.torch, which imports PyTorch, once it is asked for."""
    if name == "torch":
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


atexit.register(_heed.end_computing)

__all__ = ["ActivationCache", "Config", "DeviceArray", "Error", "Evaluation", "FactoredMatrix", "Generation", "HookPoint", "HookedTransformer", "Hypothesis",
           "LazyAttention", "Model", "PairActivationCache", "Read", "Step", "TaskEvaluation", "Tokenizer", "Training",
           "TrainingStep",
           "Translation", "Translator", "Unread", "UnreadWord", "__version__", "allow_integer_prompts", "attribute_logit",
           "attribute_tokens", "circuits", "detect_head", "errors", "evals", "evaluate", "evaluate_task", "explain", "f32_products", "get_act_name",
           "graphs", "heads", "hook_points", "interventions", "lens", "load", "load_cache", "microworld", "nearest_words", "next_words", "patching", "sae",
           "set_f32_products", "set_threads", "show_attention", "show_tokens", "threads", "train", "utils"]
