"""What is refused, and how."""

import copy
import pickle
import subprocess
import sys
import unittest

import numpy as np

import heed
from support import GOLDEN, PROMPT, TestCase, starter

Wrong = heed.errors.InvalidArgument


class Arguments(TestCase):
    def setUp(self):
        self.model = starter()

    def test_views_are_constant(self):
        _, cache = self.model.run_with_cache(PROMPT)
        before = np.array(cache["pattern", 0])
        for name in ("q", "resid_post", "mlp_out", "v"):
            with self.assertRaises(ValueError, msg=name):
                cache[name, 0][:] = 0
        with self.assertRaises(ValueError):
            cache["pattern", 0][0, 0][:] = 0
        self.assert_same_bits(np.array(cache["pattern", 0]), before)
        own = cache["q", 0].copy()
        own[:] = 0  # a copy is the caller's

    def test_the_unembedding_of_a_tied_model(self):
        tied = heed.load(GOLDEN / "families" / "gpt2")
        self.assertTrue(tied.cfg.tied_unembedding)
        with self.assertRaises(ValueError):
            tied.W_U[0, 0] = 1
        self.assert_same_bits(tied.W_U, tied.W_E.T)
        self.assertTrue(tied.W_E.flags.writeable)
        self.assertFalse(self.model.cfg.tied_unembedding)
        self.assertTrue(self.model.W_U.flags.writeable)

    def test_weights_that_are_not_there(self):
        self.assertFalse(hasattr(self.model, "b_U"))
        self.assertFalse(hasattr(self.model, "W_gate"))
        self.assertTrue(hasattr(self.model, "W_U"))

    def test_seeds(self):
        for seed in (-1, 2**70, 2**64, 1.5, "a"):
            with self.assertRaisesRegex(Wrong, "seed must be a whole number from 0 to 18446744073709551615"):
                self.model.generate(PROMPT, 1, seed=seed)
        self.model.generate(PROMPT, 1, seed=2**64 - 1).finish()
        with self.assertRaisesRegex(Wrong, "temperature must be a number from 0 to 100, not 'hot'"):
            self.model.generate(PROMPT, 1, temperature="hot")

    def test_names(self):
        for wrong in (b"starter", 3, None):
            for load in (heed.load, heed.Tokenizer.load):
                with self.assertRaisesRegex(Wrong, "expected a str or a path"):
                    load(wrong)

    def test_masked_arrays(self):
        ids = np.ma.masked_array([5, 6, 7], mask=[False, True, False])
        with self.assertRaisesRegex(Wrong, "1 masked element"):
            self.model(ids)
        self.model(np.ma.masked_array([5, 6, 7], mask=False))
        with self.assertRaisesRegex(Wrong, "masked"):
            heed.interventions.add("resid_post0", np.ma.masked_invalid([1.0, np.nan]))

    def test_unknown_arguments_name_the_known_ones(self):
        for call in (lambda: self.model(PROMPT, stop_at=1),
                     lambda: self.model.run_with_cache(PROMPT, device="cpu"),
                     lambda: self.model.run_with_hooks(PROMPT, reset_hooks_end=True),
                     lambda: self.model.generate(PROMPT, padding_side="left")):
            with self.assertRaisesRegex(Wrong, r"has no argument '\w+', expected \w+, "):
                call()

    def test_targets_and_metrics(self):
        for target in (np.zeros(4), [1, 2], [(1, 2)], "loss", 3):
            with self.subTest(target), self.assertRaisesRegex(
                    Wrong, r"expected .*\(position, token id, weight\)"):
                self.model.run_with_cache(PROMPT, incl_bwd=True, logit_target=target)

    def test_models_are_not_pickled(self):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(heed.errors.Unsupported, r"heed.load\('starter'\)"):
                copied(self.model)


class PathPatching(TestCase):
    def setUp(self):
        self.model = starter()
        self.clean = self.model.to_tokens("Late one evening, a fluffy blue hare")
        self.corrupted = self.clean.copy()
        at = list(self.model.to_str_tokens(self.clean)).index(" blue")
        self.corrupted[0, at] = self.model.to_single_token(" black")

    def patch(self, senders, receivers):
        return heed.patching.path_patch(self.model, self.clean, self.corrupted, senders, receivers,
                                        lambda logits: np.array(logits[0, -1]))

    def test_refuses_what_is_not_there(self):
        layers, heads = self.model.cfg.n_layers, self.model.cfg.n_heads
        for senders, receivers in (([(layers, 0)], "logits"), ([(0, heads)], "logits"),
                                   ([(-layers - 1, 0)], "logits"), ([(0, 0)], [(layers, 0, "q")]),
                                   ([(0, 0)], [(1, heads, "k")])):
            with self.assertRaisesRegex(Wrong, "does not exist"):
                self.patch(senders, receivers)
        for senders, receivers in (([(0, "attn")], "logits"), ([(0, 0)], [(1, 0, "z")]),
                                   ([0], "logits"), ([(0, 0)], [(1, "attn")])):
            with self.assertRaisesRegex(Wrong, "expected|does not exist"):
                self.patch(senders, receivers)

    def test_counts_from_the_end(self):
        layers, heads = self.model.cfg.n_layers, self.model.cfg.n_heads
        self.assert_same_bits(self.patch([(-1, -1)], "logits"),
                              self.patch([(layers - 1, heads - 1)], "logits"))
        self.assertFalse(np.array_equal(self.patch([(-1, -1)], "logits"),
                                        self.model(self.corrupted)[0, -1]))

    def test_feed_forward_layers_send_and_receive(self):
        last = self.model.cfg.n_layers - 1
        _, clean = self.model.run_with_cache(self.clean, ["mlp_out"], return_type=None)
        _, frozen = self.model.run_with_cache(self.corrupted, ["z"], return_type=None)
        hold = [(f"z{layer}", lambda values, hook: frozen[hook.name])
                for layer in range(last + 1)]
        wanted = self.model.run_with_hooks(self.corrupted, hold + [
            ("mlp_out1", lambda values, hook: clean[hook.name])])
        self.assert_same_bits(self.patch([(1, "mlp")], "logits"), wanted[0, -1])
        # The last feed-forward layer alone reads what the first one sends.
        _, sent = self.model.run_with_cache(self.corrupted, [f"mlp_in{last}"], return_type=None,
                                            fwd_hooks=hold + [
                                                ("mlp_out1", lambda values, hook: clean[hook.name])])
        wanted = self.model.run_with_hooks(self.corrupted, [
            (f"mlp_in{last}", lambda values, hook: sent[hook.name])])
        self.assert_same_bits(self.patch([(1, "mlp")], [(-1, "mlp")]), wanted[0, -1])


# A daemon thread that computes while the interpreter ends.
ENDING = """
import threading, time, heed
model = heed.load("starter")
tokens = list(range(5, 200))
def compute():
    while True:
        {work}
threading.Thread(target=compute, daemon=True).start()
time.sleep({wait})
"""


class Endings(unittest.TestCase):
    def test_daemon_threads_do_not_abort_the_process(self):
        for work in ("model(tokens)", "model.generate('The murderer', 64).finish()",
                     "model.run_with_hooks(tokens, [('z0', lambda values, hook: None)])",
                     "heed.heads(model, tokens)", "heed.lens(model, tokens)"):
            for wait in (0.05, 0.21):
                ended = subprocess.run([sys.executable, "-c", ENDING.format(work=work, wait=wait)],
                                       capture_output=True, text=True, timeout=120)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), work)


if __name__ == "__main__":
    unittest.main()
