"""TransformerLens's name of the module of hooks."""

from .hooks import HookPoint

__all__ = ["HookPoint"]
