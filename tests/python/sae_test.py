"""Sparse dictionaries in passes, against the same rules in PyTorch on the model's own stream."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

import heed
from support import GOLDEN, TestCase, safetensors_by_hand, starter

TEXT = "A fluffy blue creature roamed the verdant forest."
POINT = "blocks.1.hook_resid_pre"
FEATURES = 96

try:
    import torch
except ImportError:
    torch = None


def written(directory, config, seed=3, **sizes):
    """A random dictionary of a width of the model in SAELens's layout, and its weights."""
    from dictionary_module import random_weights
    generator = np.random.default_rng(seed)
    weights = random_weights(generator, config["architecture"], config["d_in"], FEATURES,
                             config.get("d_out"))
    folder = pathlib.Path(directory) / f"{config['architecture']}_{seed}"
    folder.mkdir()
    (folder / "cfg.json").write_text(json.dumps(config))
    safetensors_by_hand.write(folder / "sae_weights.safetensors", weights)
    return str(folder), weights


def config_of(architecture, model, point=POINT, **fields):
    width = model.cfg.d_mlp if point.endswith("hook_post") else model.cfg.d_model
    return {"architecture": architecture, "d_in": width, "d_sae": FEATURES, "k": 12,
            "normalize_activations": "none", "hook_name": point, **fields}


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Saes(TestCase):
    def setUp(self):
        self.model = starter()
        self.tokens = self.model.to_tokens(TEXT)
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def sae(self, architecture, point=POINT, seed=3, **fields):
        from dictionary_module import SparseDictionary
        config = config_of(architecture, self.model, point, **fields)
        folder, weights = written(self.directory.name, config, seed)
        return heed.sae.load(folder), SparseDictionary(config, weights)

    def test_golden_files_encode_and_decode(self):
        folder = GOLDEN / "dictionaries" / "gated"
        sae, golden = heed.sae.load(str(folder)), safetensors_by_hand.read(folder / "golden.safetensors")
        x = golden["hook_sae_input"].reshape(1, *golden["hook_sae_input"].shape)
        acts = sae.encode(x)
        self.assert_close(acts[0], golden["hook_sae_acts_post"])
        self.assert_close(sae.decode(acts, x)[0], golden["hook_sae_output"])
        self.assertEqual(sae.W_enc.shape, (sae.cfg.d_in, sae.cfg.d_sae))
        self.assertFalse(hasattr(sae, "threshold"))
        self.assertEqual(len(heed.sae.load_all(str(GOLDEN / "dictionaries" / "cross_layer"))), 3)

    def test_features_and_what_the_pass_goes_on_with_equal_pytorch(self):
        for architecture, norm in (("standard", "none"), ("gated", "none"), ("jumprelu", "layer_norm"),
                                   ("topk", "constant_norm_rescale"), ("batchtopk", "none")):
            sae, module = self.sae(architecture, normalize_activations=norm)
            _, clean = self.model.run_with_cache(self.tokens, names_filter=POINT)
            logits, cache = self.model.run_with_cache_with_saes(self.tokens, saes=[sae])
            wanted = module.forward(torch.tensor(clean[POINT][0]).double())
            for step, values in wanted.items():
                self.assert_close(cache[f"{POINT}.{step}"][0], values, 2e-5, step)
            self.assert_close(cache[POINT][0], wanted["hook_sae_output"], 2e-5)
            replaced = self.model.run_with_hooks(
                self.tokens, [(POINT, lambda values, hook: wanted["hook_sae_output"].numpy()[None])])
            self.assert_close(logits, replaced, 2e-5, architecture)
            self.assert_same_bits(self.model.run_with_saes(self.tokens, saes=[sae]), logits)

    def test_with_the_error_term_only_changed_features_change_the_pass(self):
        sae, module = self.sae("topk")
        _, clean = self.model.run_with_cache(self.tokens, names_filter=POINT)
        logits, cache = self.model.run_with_cache_with_saes(self.tokens, saes=sae,
                                                            use_error_term=True)
        self.assert_close(logits, self.model(self.tokens), 2e-5)
        error = clean[POINT] - cache[POINT + ".hook_sae_recons"]
        self.assert_close(cache[POINT + ".hook_sae_error"], error)
        feature = int(cache[POINT + ".hook_sae_acts_post"][0, -1].argmax())

        def ablate(acts, hook):
            acts[..., feature] = 0

        with self.model.saes(sae, use_error_term=True):
            ablated = self.model.run_with_hooks(self.tokens, [("hook_sae_acts_post", ablate)])
        row = module.weights["W_dec"][feature].numpy()
        steered = clean[POINT] - cache[POINT + ".hook_sae_acts_post"][..., feature, None] * row
        wanted = self.model.run_with_hooks(self.tokens, [(POINT, lambda values, hook: steered)])
        self.assert_close(ablated, wanted, 2e-5)
        self.assertGreater(np.abs(ablated - logits).max(), 1e-3)

    def test_gradients_equal_pytorch(self):
        """By features, and through the encoder to the stream, as autograd has them."""
        target = [(-1, 5, 1.0), (3, 7, -0.5)]
        for architecture, norm in (("standard", "none"), ("gated", "none"), ("topk", "layer_norm"),
                                   ("jumprelu", "constant_norm_rescale")):
            for error in (False, True):
                sae, module = self.sae(architecture, seed=3 + error, normalize_activations=norm)
                _, cache = self.model.run_with_cache_with_saes(
                    self.tokens, saes=[sae], use_error_term=error, incl_bwd=True,
                    logit_target=target)
                x = torch.tensor(cache[POINT + ".hook_sae_input"][0]).double().requires_grad_(True)
                steps = module.forward(x)
                for values in steps.values():
                    if values.requires_grad and values is not x:
                        values.retain_grad()
                d_out = torch.tensor(cache[POINT + ".hook_sae_output_grad"][0]).double()
                (steps["hook_sae_output"] * d_out).sum().backward()
                self.assertGreater(float(d_out.abs().max()), 0)
                for step in ("hook_sae_acts_post", "hook_sae_recons", "hook_sae_acts_pre"):
                    wanted = steps[step].grad
                    if step == "hook_sae_acts_pre":  # of gated ones autograd has magnitudes' alone
                        wanted = torch.where(steps["hook_sae_acts_post"] > 0, wanted, 0)
                    self.assert_close(cache[f"{POINT}.{step}_grad"][0], wanted, 2e-5, step)
                self.assert_close(cache[POINT + ".hook_sae_input_grad"][0], x.grad, 2e-5)
                self.assert_close(cache[POINT + "_grad"][0], x.grad, 2e-5, architecture)

    def test_gradients_before_the_dictionary_equal_finite_differences(self):
        sae, _ = self.sae("standard")
        target, before = [(-1, 5, 1.0)], "blocks.0.hook_resid_pre"
        _, cache = self.model.run_with_cache_with_saes(
            self.tokens, saes=[sae], incl_bwd=True, logit_target=target,
            names_filter=[before, "hook_sae_acts_post"])
        direction = np.random.default_rng(1).standard_normal(cache[before].shape).astype(np.float32)
        step = 2e-4

        def logit(sign):
            def move(values, hook):
                return values + sign * step * direction

            return float(self.model.run_with_hooks_with_saes(
                self.tokens, saes=[sae], fwd_hooks=[(before, move)])[0, -1, 5])

        slope = (logit(1) - logit(-1)) / (2 * step)
        wanted = float((cache[before + "_grad"] * direction).sum())
        # Logits of about 10 in f32, rounded by 1e-6 a few times, over 4e-4; and a feature that
        # begins or ends to be active between the two.
        self.assertAlmostEqual(slope, wanted, delta=0.02 * abs(wanted))

    def test_a_transcoder_reads_one_point_and_writes_another(self):
        read, write = "blocks.1.hook_resid_mid", "blocks.1.hook_mlp_out"
        sae, module = self.sae("skip_transcoder", read, d_out=self.model.cfg.d_model,
                               hook_name_out=write)
        self.assertTrue(sae.cfg.is_transcoder)
        _, clean = self.model.run_with_cache(self.tokens, names_filter=read)
        _, cache = self.model.run_with_cache_with_saes(self.tokens, saes=[sae], incl_bwd=True,
                                                       logit_target=[(-1, 5, 1.0)])
        x = torch.tensor(clean[read][0]).double().requires_grad_(True)
        steps = module.forward(x)
        self.assert_close(cache[write][0], steps["hook_sae_output"].detach(), 2e-5)
        steps["hook_sae_acts_post"].retain_grad()
        # The stream after the block is the stream in its middle and what the transcoder writes.
        d_post = torch.tensor(cache["blocks.1.hook_resid_post_grad"][0]).double()
        ((x + steps["hook_sae_output"]) * d_post).sum().backward()
        self.assert_close(cache[read + ".hook_sae_acts_post_grad"][0],
                          steps["hook_sae_acts_post"].grad, 2e-5)
        self.assert_close(cache[read + "_grad"][0], x.grad, 2e-5)

    def test_heads_side_by_side_and_one_of_them(self):
        point, cfg = "blocks.1.attn.hook_z", self.model.cfg
        sae, module = self.sae("standard", point, d_in=cfg.n_heads * cfg.d_head)
        _, clean = self.model.run_with_cache(self.tokens, names_filter=point)
        _, cache = self.model.run_with_cache_with_saes(self.tokens, saes=[sae])
        flat = torch.tensor(clean[point][0].reshape(len(self.tokens[0]), -1)).double()
        self.assert_close(cache[point][0].reshape(flat.shape), module.forward(flat)["hook_sae_output"],
                          2e-5)
        sae, module = self.sae("standard", point, 4, d_in=cfg.d_head, hook_head_index=1)
        _, cache = self.model.run_with_cache_with_saes(self.tokens, saes=[sae])
        wanted = clean[point].copy()
        wanted[0, :, 1] = module.forward(torch.tensor(clean[point][0, :, 1]).double())["hook_sae_output"]
        self.assert_close(cache[point], wanted, 2e-5)

    def test_texts_of_different_lengths_give_what_each_gives_alone(self):
        sae, _ = self.sae("topk")
        texts = [TEXT, "The murderer was"]
        _, cache = self.model.run_with_cache_with_saes(texts, saes=[sae])
        acts = cache[POINT + ".hook_sae_acts_post"]
        for row, text in enumerate(texts):
            _, alone = self.model.run_with_cache_with_saes(text, saes=[sae])
            own = alone[POINT + ".hook_sae_acts_post"][0]
            self.assert_close(acts[row, :len(own)], own, 2e-5)
            self.assertEqual(np.abs(acts[row, len(own):]).max(initial=0), 0)

    def test_what_cannot_be_is_refused(self):
        sae, _ = self.sae("standard")
        other = heed.sae.load(str(GOLDEN / "dictionaries" / "standard"))
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "has 8 inputs, but"):
            self.model.run_with_saes(self.tokens, saes=[other])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "two dictionaries read"):
            self.model.run_with_saes(self.tokens, saes=[sae, sae])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "hook_sae_acts_mid"):
            self.model.run_with_hooks_with_saes(
                self.tokens, saes=[sae], fwd_hooks=[("hook_sae_acts_mid", lambda acts, hook: acts)])
        with self.assertRaisesRegex(heed.errors.Unsupported, "add a gradient hook"):
            self.model.run_with_cache_with_saes(
                self.tokens, saes=[sae], incl_bwd=True,
                fwd_hooks=[("hook_sae_acts_post", lambda acts, hook: 2 * acts)])
        _, cache = self.model.run_with_cache_with_saes(
            self.tokens, saes=[sae], incl_bwd=True,
            fwd_hooks=[("hook_sae_acts_post", lambda acts, hook: 2 * acts)],
            bwd_hooks=[("hook_sae_acts_post", lambda gradient, hook: 2 * gradient)])
        self.assertIn(POINT + ".hook_sae_acts_post_grad", cache)


if __name__ == "__main__":
    unittest.main()
