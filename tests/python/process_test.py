"""Several interpreters, threads and processes at once."""

import importlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import heed
from support import PROMPT, TestCase, starter

TEXT = "\n".join(heed.microworld.story(1, index)["text"] for index in range(60))


def subinterpreters():
    """CPython's module of them, or None."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def loss_of(text):
    return starter().loss(text)


def in_a_fork(work, limit=60):
    """The exit status of a child that runs `work`, None for one that hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:  # noqa: BLE001
            os.write(2, f"in the fork: {error!r}\n".encode())
        finally:
            os._exit(status)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


class Interpreters(TestCase):
    @unittest.skipIf(subinterpreters() is None, "this Python has no subinterpreters")
    def test_a_subinterpreter_refuses(self):
        # In a process of its own: what an interpreter imports stays in it until it ends.
        script = """
import importlib, sys
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        pass
if {first!r}:
    import heed
code = '''
import sys
sys.path[:] = {path!r}
try:
    import heed
except ImportError as error:
    print("refused:", error, flush=True)
else:
    print("imported", flush=True)
'''
for _ in range(2):
    other = interpreters.create()
    interpreters.run_string(other, code)
    interpreters.destroy(other)
import heed
print(heed.load("starter")("Once").shape[0])
"""
        for first in (False, True):
            found = subprocess.run([sys.executable, "-c", script.format(path=sys.path, first=first)],
                                   capture_output=True, text=True, env={
                                       **os.environ, "PYTHONPATH": ":".join(sys.path)})
            self.assertEqual(found.returncode, 0, found.stderr)
            lines = found.stdout.splitlines()
            self.assertEqual(len(lines), 3, found.stdout)
            for line in lines[:2]:
                self.assertIn("refused: heed cannot be imported in a subinterpreter", line)
            self.assertEqual(lines[2], "1")


class Forks(TestCase):
    def test_a_fork_computes_the_same(self):
        model = starter()
        tokens = np.tile(model.to_tokens(PROMPT), 20)
        logits, cache = model.run_with_cache(tokens)
        count = heed.threads()

        def work():
            np.testing.assert_array_equal(model(tokens), logits)
            again, inner = model.run_with_cache(tokens, fwd_hooks=[("z0", lambda v, hook: v)])
            np.testing.assert_array_equal(again, logits)
            np.testing.assert_array_equal(cache["pattern", 0][0, 0], cache["pattern", 0][0, 0])
            assert len(model.generate(PROMPT, 3).finish().tokens) == 3
            assert heed.threads() == count
            heed.set_threads(3)
            np.testing.assert_allclose(model(tokens), logits, atol=1e-3)

        self.assertEqual(in_a_fork(work), 0)
        self.assert_same_bits(model(tokens), logits)
        self.assertEqual(heed.threads(), count)

    def test_a_pool_of_forks(self):
        model = starter()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map_async(loss_of, [PROMPT, PROMPT + " the thief."]).get(60)
        for loss, text in zip(found, (PROMPT, PROMPT + " the thief.")):
            self.assertAlmostEqual(loss, model.loss(text), places=4)

    def test_a_training_run_stays_where_it_began(self):
        with tempfile.TemporaryDirectory() as folder:
            run = heed.train(text=TEXT, out=str(pathlib.Path(folder) / "run"), settings={
                "steps": 8, "layers": 1, "heads": 2, "channels": 16, "context": 32,
                "batch_size": 2})
            next(run)

            def work():
                try:
                    next(run)
                except heed.errors.Unsupported as error:
                    assert "process that began it" in str(error)
                else:
                    raise AssertionError("a fork went on")
                globals().pop("run", None)

            self.assertEqual(in_a_fork(work), 0)
            self.assertEqual(run.finish().result["steps"], 8)


class Threads(TestCase):
    def test_loading_closing_training_and_computing_at_once(self):
        errors, done = [], []
        shared = heed.load("starter")
        tokens = shared.to_tokens(PROMPT)
        logits = shared(tokens)

        def guarded(work):
            def run():
                try:
                    work()
                    done.append(work)
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)
            return threading.Thread(target=run)

        def load_and_close():
            for _ in range(5):
                model = heed.load("starter")
                values = model.W_E
                first = model(tokens)
                model.close()
                assert np.array_equal(first, logits) and np.isfinite(values).all()

        def read():
            for _ in range(10):
                _, cache = shared.run_with_cache(tokens)
                np.asarray(cache["pattern", 1]), cache["normalized", 2, "ln1"], cache["post", 0]

        def generate():
            generation = shared.generate(PROMPT, 10, temperature=0, fwd_hooks=[
                ("z0", lambda v, hook: v)])
            generation.finish()

        with tempfile.TemporaryDirectory() as folder:
            def train():
                heed.train(text=TEXT, out=str(pathlib.Path(folder) / "run"), settings={
                    "steps": 4, "layers": 1, "heads": 2, "channels": 16, "context": 32,
                    "batch_size": 2}, fwd_hooks=[("z0", lambda v, hook: None)]).finish()

            works = [load_and_close, load_and_close, read, read, generate, generate, train]
            threads = [guarded(work) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(done), len(works))
        self.assert_same_bits(shared(tokens), logits)

    def test_a_run_is_not_advanced_by_its_own_hook(self):
        with tempfile.TemporaryDirectory() as folder:
            run = heed.train(text=TEXT, out=str(pathlib.Path(folder) / "run"), settings={
                "steps": 4, "layers": 1, "heads": 2, "channels": 16, "context": 32,
                "batch_size": 2}, fwd_hooks=[("z0", lambda v, hook: next(run))])
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "own hooks"):
                next(run)


if __name__ == "__main__":
    unittest.main()
