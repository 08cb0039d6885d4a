"""Training as steps that Python takes.

    run = heed.train(text=text, out="runs/mine", settings={"steps": 200, "layers": 2})
    for step in run:
        print(step.step, step.loss)
        if step.loss < 1.5:
            run.stop()
    model = run.model()
"""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _heed, _inputs
from .errors import InvalidArgument
from .hooks import call_with_gradient, call_with_point, named
from .model import Model, load


class TrainingStep(NamedTuple):
    step: int  # finished
    steps: int  # of the whole run
    loss: float  # nats
    learning_rate: float
    tokens_per_second: float
    seconds_left: float
    validation_loss: Optional[float]  # where this step was evaluated


class Training:
    """A training run that computes a step when it is asked for one.

    ``for step in run`` trains; :meth:`stop` ends it after the step, with all of it saved, so that
    ``heed.train(out=…, resume=True)`` goes on. Dropped, it stops too.
    :attr:`learning_rate_factor` changes the learning rate from the next step on.
    """

    def __init__(self, run, out: str):
        self._run = run
        self.out = out

    def __iter__(self) -> Iterator[TrainingStep]:
        return self

    def __next__(self) -> TrainingStep:
        step = self._run.next()
        if step is None:
            raise StopIteration
        return TrainingStep(*step)

    def stop(self) -> None:
        self._run.stop()

    @property
    def learning_rate_factor(self) -> float:
        """Multiplies the schedule's learning rate [1]. It is not saved with the run."""
        return self._run.learning_rate_factor

    @learning_rate_factor.setter
    def learning_rate_factor(self, factor: float) -> None:
        if not 0 <= float(factor) < float("inf"):
            raise InvalidArgument(f"learning_rate_factor is {factor}, expected a number from 0 on")
        self._run.learning_rate_factor = float(factor)

    def finish(self) -> "Training":
        """Takes all steps that are left."""
        for _ in self:
            pass
        return self

    @property
    def samples(self) -> List[Tuple[int, str]]:
        """(step, text) of the model, where the settings ask for samples."""
        return self._run.samples

    @property
    def result(self) -> Optional[Dict[str, Any]]:
        """After the end: steps, losses, validation losses, seconds, checkpoint."""
        return self._run.result

    def model(self, **options) -> Model:
        """The model of the last checkpoint."""
        return load(self.out, **options)


def train(files: Sequence[str] = (), text: str = "", out: str = "", validation: str = "",
          pairs: Sequence[str] = (), validation_pairs: Sequence[str] = (), preset: str = "",
          settings: Optional[Dict[str, Any]] = None, from_: str = "",
          resume: bool = False, fwd_hooks: Sequence[Tuple[str, Callable]] = (),
          bwd_hooks: Sequence[Tuple[str, Callable]] = ()) -> Training:
    """Prepares a training run on text files, a text, or pairs of a translator's sentences.

    ``settings``: those of `heed train --set` by name, on top of ``preset``. ``out``: the run's
    directory. ``from_``: a model directory, or a GGUF file, to fine-tune.

    ``fwd_hooks``, ``bwd_hooks``: pairs of a name and a function of ``(values, hook)``, as in
    :meth:`heed.Model.run_with_hooks`, in the passes of every training step, not of evaluations.
    Values are those of the batch, (B, T, …). Backward goes on from what a forward hook leaves, and
    takes what it changed for a constant that it added; a backward hook at the same point can give
    another derivative. They run while a step is waited for, on a thread of their own.
    """
    if not out:
        raise InvalidArgument("a run needs a directory: out is empty")
    listed = lambda paths: [str(paths)] if isinstance(paths, str) else [str(path) for path in paths]
    options = {"files": listed(files), "text": text, "validation": str(validation),
               "pairs": listed(pairs), "validation_pairs": listed(validation_pairs),
               "out": str(out), "resume": bool(resume), "preset": preset, "from": str(from_),
               "settings": [(name, _setting(value)) for name, value in (settings or {}).items()],
               "hooks": named(fwd_hooks, call_with_point),
               "gradient_hooks": named(bwd_hooks, call_with_gradient)}
    return Training(_heed.train(options), str(out))


def _setting(value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Evaluation(NamedTuple):
    tokens: int  # scored
    loss: float  # mean over them, nats
    standard_error: Optional[float]
    perplexity: float
    bits_per_byte: Optional[float]  # of a text
    losses: np.ndarray  # of each token but the first


def evaluate(model: Model, text: Union[str, np.ndarray, Sequence[int]] = "", file: str = "",
             window: int = 0, stride: int = 0, batch: int = 8) -> Evaluation:
    """How well a model predicts a text, token ids, or a file, as `heed eval`.

    ``window``: tokens of a pass [the context]; ``stride``: between windows [window].
    """
    model._refuse_translator("evaluations of a text")
    if file:
        found = _heed.evaluate_file(model._hooked, str(file), window, stride, batch)
    elif isinstance(text, str):
        found = _heed.evaluate_text(model._hooked, text, window, stride, batch)
    else:
        found = _heed.evaluate_tokens(model._hooked, _inputs.token_array(text).reshape(-1), window,
                                      stride, batch)
    return Evaluation(**found)


class Share(NamedTuple):
    mean: float
    standard_error: Optional[float]  # none of a single question


class Answer(NamedTuple):
    log_likelihoods: List[float]  # nats, of each continuation
    chosen: int
    chosen_by_length: int
    right: int
    is_right: bool


class TaskEvaluation(NamedTuple):
    layout: str  # "HellaSwag", "ARC" or "LAMBADA"
    questions: int
    shortened: int  # contexts that lost their beginning to fit
    accuracy: Share
    accuracy_by_length: Optional[Share]  # of choices, by likelihood for each character
    chance: Optional[float]  # of choices: what guessing reaches
    perplexity: Optional[Share]  # of last words
    answers: List[Answer]


def evaluate_task(model: Model, file: str, limit: int = 0) -> TaskEvaluation:
    """How many questions of HellaSwag's, ARC's or LAMBADA's files a model answers, as
    `heed eval --task`.

    ``limit``: the first N questions [0: all].
    """
    model._refuse_translator("a task's evaluation")
    found = _heed.evaluate_task(model._hooked, str(file), limit)

    def share(name: str) -> Optional[Share]:
        return None if found[name] is None else Share(**found[name])

    return TaskEvaluation(layout=found["layout"], questions=found["questions"],
                          shortened=found["shortened"], accuracy=Share(**found["accuracy"]),
                          accuracy_by_length=share("accuracy_by_length"), chance=found["chance"],
                          perplexity=share("perplexity"),
                          answers=[Answer(**answer) for answer in found["answers"]])
