"""Models on a device against the same on the processor. The device is emulated unless HEED_CUDA_LIBRARY names a library."""
import os
import pathlib
import unittest

import numpy as np

import heed
from support import PROGRAM, PROMPT, TestCase, starter

EMULATED = pathlib.Path(PROGRAM).parents[1] / "tests" / "heed_cuda_emulated.so"


class Devices(TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.setdefault("HEED_CUDA_LIBRARY", str(EMULATED))
        if not os.path.exists(os.environ["HEED_CUDA_LIBRARY"]):
            raise unittest.SkipTest("no library for a device was built")
        cls.here, cls.there = starter(), heed.load("starter", device="cuda")

    def test_says_where_it_is(self):
        self.assertEqual((self.here.device, self.there.device), ("cpu", "cuda:0"))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "expected cpu, cuda"):
            heed.load("starter", device="gpu")

    def test_activations_and_gradients(self):
        here, there = (model.run_with_cache(PROMPT) for model in (self.here, self.there))
        self.assert_close(there[0], here[0], 1e-4)
        for name in ("blocks.2.attn.hook_pattern", "blocks.3.hook_resid_post", "ln_final.hook_normalized"):
            self.assert_close(there[1][name], here[1][name], 1e-4)

    def test_hooks_change_what_follows(self):
        def half(values, hook):
            return values * 0.5

        hooks = [("blocks.1.hook_resid_pre", half)]
        here, there = (model.run_with_hooks(PROMPT, fwd_hooks=hooks) for model in (self.here, self.there))
        self.assert_close(there, here, 1e-4)
        self.assertGreater(np.abs(there - self.there(PROMPT)).max(), 1e-2)

    def test_multiplies_in_tf32_where_it_is_told_to(self):
        tokens = self.here.to_tokens(PROMPT * 16)
        self.assertGreater(tokens.shape[1], 32)
        f32 = self.there(tokens)
        self.addCleanup(heed.set_f32_products, heed.f32_products())
        heed.set_f32_products("tf32")
        self.assertEqual(heed.f32_products(), "tf32")
        tf32 = self.there(tokens)
        self.assertGreater(np.abs(tf32 - f32).max(), 1e-4 * np.abs(f32).max())
        self.assert_close(tf32, f32, 5e-3)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "expected f32 or tf32"):
            heed.set_f32_products("bf16")

    def test_generates(self):
        text = [model.generate(PROMPT, max_new_tokens=8, temperature=0) for model in (self.here, self.there)]
        self.assertEqual(*("".join(step.text for step in steps) for steps in text))


if __name__ == "__main__":
    unittest.main()
