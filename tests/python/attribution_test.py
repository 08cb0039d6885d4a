"""Attributions and stacks of the stream beside float64 computations of NumPy that share no code with
heed: of a LLaMA toy with grouped heads, a NeoX toy with parallel blocks, and the starter."""

import json
import unittest

import numpy as np

import heed
from support import GOLDEN, TestCase, golden, program, starter

LLAMA = GOLDEN / "families" / "llama"
NEOX = GOLDEN / "families" / "neox"
TOKENS = [5, 17, 4, 30, 9, 22]
SHARP = 40.0  # embeddings so long that RMS norms forget their length


class Batches(TestCase):
    """Of several texts what each gives, or the means with their standard errors."""

    def test_explanations_of_several_texts(self):
        model = starter()
        texts = ["The fox waited in the forest", "The murderer was", "A hare saw the old tower"]
        answers, wrongs = [5, 6, 7], [8, 9, 10]
        heads = [heed.heads(model, text) for text in texts]
        mean = heed.heads(model, texts)
        attributions = [heed.attribute_logit(model, *each, unit="head")
                        for each in zip(texts, answers, wrongs)]
        attribution = heed.attribute_logit(model, texts, answers, wrongs, unit="head")
        for found, error, wanted in (
                (mean["entropy"], mean.standard_errors["entropy"], [one["entropy"] for one in heads]),
                (attribution.values, attribution.standard_errors,
                 [one.values for one in attributions])):
            self.assertGreater(np.ptp(wanted, axis=0).max(), 1e-3)
            np.testing.assert_allclose(found, np.mean(wanted, 0), rtol=1e-12)
            np.testing.assert_allclose(error, np.std(wanted, 0, ddof=1) / np.sqrt(3), rtol=1e-12)
        self.assertEqual(attribution.names, attributions[0].names)
        for found, wanted in zip(heed.lens(model, texts), (heed.lens(model, text) for text in texts)):
            self.assert_same_bits(found.probabilities, wanted.probabilities)
        found = heed.attribute_tokens(model, texts[:2], answers[:2], 3, steps=4)
        for one, text, answer in zip(found, texts, answers):
            self.assert_same_bits(one.values, heed.attribute_tokens(model, text, answer, 3, steps=4).values)
        self.assertEqual([words[0][0] for words in heed.next_words(model, texts)],
                         [int(model(text)[0, -1].argmax()) for text in texts])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "2 tokens for 3 texts"):
            heed.attribute_logit(model, texts, [1, 2])
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "different parts"):
            heed.attribute_logit(model, texts, 1, unit="source")


class Llama:
    """The logits of the last position, from embeddings (T, C) that may be complex."""

    def __init__(self, directory):
        config = json.loads((directory / "config.json").read_text())
        self.weights = {name: np.asarray(values, np.float64)
                        for name, values in golden(directory / "model.safetensors").items()}
        self.layers, self.eps = config["num_hidden_layers"], config["rms_norm_eps"]
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        self.base = config["rope_theta"]

    def norm(self, x, name):
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return x / scale * self.weights[name + ".weight"]

    def rotate(self, x):
        size = x.shape[-1]
        angles = np.arange(len(x))[:, None] * self.base ** (-np.arange(0, size, 2) / size)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        first, second = x[..., :size // 2], x[..., size // 2:]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)

    def logits(self, x):
        positions = len(x)
        for layer in range(self.layers):
            block = f"model.layers.{layer}."
            weight = lambda name: self.weights[block + name + ".weight"].T
            y = self.norm(x, block + "input_layernorm")
            split = lambda name, heads: (y @ weight(f"self_attn.{name}_proj")).reshape(
                positions, heads, -1)
            q, k, v = (split("q", self.heads), split("k", self.groups), split("v", self.groups))
            q, k = self.rotate(q), self.rotate(k)
            k, v = (np.repeat(each, self.heads // self.groups, 1) for each in (k, v))
            scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1])
            scores = np.where(np.tril(np.ones((positions, positions), bool)), scores, -1e9)
            weights = np.exp(scores - scores.real.max(-1, keepdims=True))
            weights = weights / weights.sum(-1, keepdims=True)
            z = np.einsum("hts,shd->thd", weights, v).reshape(positions, -1)
            x = x + z @ weight("self_attn.o_proj")
            y = self.norm(x, block + "post_attention_layernorm")
            gate = y @ weight("mlp.gate_proj")
            x = x + (gate / (1 + np.exp(-gate)) * (y @ weight("mlp.up_proj"))) @ weight(
                "mlp.down_proj")
        return self.norm(x[-1], "model.norm") @ self.weights["lm_head.weight"].T

    def integrated(self, x, start, token):
        """Of each position, by complex steps, on 13 decades of 24 points."""
        nodes, weights = np.polynomial.legendre.leggauss(24)
        edges = np.concatenate([[0.0], 10.0 ** np.arange(-12, 1)])
        found = np.zeros(len(x))
        for begin, end in zip(edges[:-1], edges[1:]):
            for node, weight in zip(nodes, weights):
                alpha = begin + (end - begin) * (node + 1) / 2
                for t in range(len(x)):
                    moved = (start + alpha * (x - start)).astype(complex)
                    moved[t] += 1e-30j * (x - start)[t]
                    found[t] += weight * (end - begin) / 2 * self.logits(moved)[token].imag / 1e-30
        return found


class IntegratedGradients(TestCase):
    def setUp(self):
        self.reference = Llama(LLAMA)
        table = self.reference.weights["model.embed_tokens.weight"]
        table *= SHARP
        self.model = heed.load(str(LLAMA))
        self.model.weight("embed.W_E")[...] *= np.float32(SHARP)
        self.table, self.x = table, table[TOKENS]
        self.token = 11

    def test_reach_the_true_values(self):
        zero = np.zeros_like(self.x)
        expected = self.reference.integrated(self.x, zero, self.token)
        change = (self.reference.logits(self.x) - self.reference.logits(zero))[self.token]
        self.assertAlmostEqual(expected.sum(), change, delta=1e-4)  # the reference itself is right
        found = heed.attribute_tokens(self.model, TOKENS, self.token, steps=24)
        self.assertAlmostEqual(found.logit - found.baseline, change, delta=1e-4 * abs(change) + 1e-4)
        # Of f32 passes whose contributions, of tokens and decades, cancel each other.
        self.assert_close(found.values, expected, 1e-3)
        usual = heed.attribute_tokens(self.model, TOKENS, self.token)
        self.assertAlmostEqual(usual.values.sum(), change, delta=0.02 * abs(change))

    def test_baselines(self):
        others = [3, 8, 40, 2, 31, 7]
        starts = {"mean": np.tile(self.table.mean(0), (len(TOKENS), 1)),
                  13: np.tile(self.table[13], (len(TOKENS), 1)), tuple(others): self.table[others]}
        for baseline, start in starts.items():
            found = heed.attribute_tokens(self.model, TOKENS, self.token, steps=24,
                                          baseline=list(baseline) if isinstance(baseline, tuple)
                                          else baseline)
            self.assert_close(found.baseline, self.reference.logits(start)[self.token], 1e-3)
            self.assert_close(found.values,
                              self.reference.integrated(self.x, start, self.token), 1e-3)
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "the baseline has 2 tokens"):
            heed.attribute_tokens(self.model, TOKENS, self.token, baseline=[1, 2])

    def test_a_text_and_a_token_of_the_tokenizer(self):
        model, text = starter(), "Late one evening, a fluffy blue hare"
        token = heed.attribute_tokens(model, text, " deep", baseline=" black")
        same = heed.attribute_tokens(model, text, " deep", baseline=model.to_single_token(" black"))
        self.assert_same_bits(token.values, same.values)
        other = text.replace("blue", "black")
        found = heed.attribute_tokens(model, text, " deep", baseline=other)
        logit = float(model(other)[0, -1, model.to_single_token(" deep")])
        self.assertAlmostEqual(found.baseline, logit, places=3)
        differs = [piece == " blue" for piece in found.pieces]
        self.assertEqual(found.values.nonzero()[0].tolist(), np.nonzero(differs)[0].tolist())

    def test_what_misses_its_sum_is_refused(self):
        with self.assertRaisesRegex(heed.errors.Unsupported, "take more steps, or another baseline"):
            heed.attribute_tokens(self.model, TOKENS, self.token, steps=1)


class Stacks(TestCase):
    def test_the_lens_is_the_final_norm_of_each_stream(self):
        model = starter()
        text = "A fluffy blue creature roamed the verdant forest."
        _, cache = model.run_with_cache(text)
        stream = np.asarray(cache.accumulated_resid(), np.float64)
        centred = stream - stream.mean(-1, keepdims=True)
        expected = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + model.cfg.eps)
        found = cache.accumulated_resid(apply_ln=True)
        self.assert_close(found, expected, 1e-5)
        self.assert_close(cache.accumulated_resid(apply_ln=True, pos_slice=-1), expected[:, :, -1],
                          1e-5)
        self.assert_close(cache.apply_ln_to_stack(cache.accumulated_resid(), recompute_ln=True),
                          expected, 1e-5)
        # With the gain and the bias of the norm, the entropies are those of the lens.
        logits = (found.astype(np.float64) * model.weight("ln_final.w") +
                  model.weight("ln_final.b")) @ model.W_U
        logits -= logits.max(-1, keepdims=True)
        log = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        entropies = -(np.exp(log) * log).sum(-1)[:, 0]
        self.assert_close(heed.lens(model, text).entropies, entropies, 1e-4)

    def test_another_norm_scales_by_the_pass(self):
        _, cache = starter().run_with_cache("A fluffy blue creature")
        stream = np.asarray(cache.accumulated_resid(2), np.float64)
        expected = (stream - stream.mean(-1, keepdims=True)) / np.asarray(cache["scale", 2, "ln1"])
        self.assert_close(cache.accumulated_resid(2, apply_ln=True), expected, 1e-5)
        parts = np.asarray(cache.decompose_resid(apply_ln=True), np.float64)
        self.assert_close(parts.sum(0), cache["normalized"], 1e-5)  # shares of one scale
        with self.assertRaisesRegex(heed.errors.InvalidArgument, "only the final norm"):
            cache.apply_ln_to_stack(stream.astype(np.float32), 2, recompute_ln=True)

    def test_of_rms_norms(self):
        model = heed.load(str(LLAMA))
        _, cache = model.run_with_cache(TOKENS)
        stream = np.asarray(cache.accumulated_resid(), np.float64)
        expected = stream / np.sqrt((stream ** 2).mean(-1, keepdims=True) + model.cfg.eps)
        self.assert_close(cache.accumulated_resid(apply_ln=True), expected, 1e-5)

    def test_parallel_blocks_have_no_middle(self):
        model = heed.load(str(NEOX))
        _, cache = model.run_with_cache(TOKENS)
        parts, labels = cache.decompose_resid(1, mlp_input=True, return_labels=True)
        self.assertEqual(labels, ["embed", "0_attn_out", "0_mlp_out"])
        # What feed-forward of layer 1 reads is the stream before the block.
        self.assert_close(np.asarray(parts, np.float64).sum(0), cache["resid_pre", 1], 1e-5)
        scaled = cache.decompose_resid(1, mlp_input=True, apply_ln=True)
        self.assert_close(np.asarray(scaled, np.float64).sum(0), cache["normalized", 1, "ln2"], 1e-5)
        _, labels = cache.accumulated_resid(incl_mid=True, return_labels=True)
        self.assertEqual(labels, [f"{layer}_pre" for layer in range(model.cfg.n_layers)]
                         + ["final_post"])
        _, labels = cache.accumulated_resid(1, mlp_input=True, return_labels=True)
        self.assertEqual(labels, ["0_pre", "1_pre"])


class GroupedHeads(TestCase):
    def setUp(self):
        self.model = heed.load(str(LLAMA))  # four heads of queries, two of keys and values

    def test_a_head_names_the_keys_that_it_reads(self):
        zero = lambda values, hook: values.__setitem__((..., 1, slice(None)), 0)
        for part in "kv":
            hooked = self.model.run_with_hooks(TOKENS, [(f"{part}1", zero)])
            for head in (2, 3):
                edited = heed.interventions.apply(
                    self.model, heed.interventions.zero(f"L1H{head}.{part}"))
                self.assert_close(edited(TOKENS), hooked, 1e-6)

    def test_grids_are_labelled(self):
        others = TOKENS[:2] + [33] + TOKENS[3:]
        shared, all_heads = ["H0-1", "H2-3"], ["H0", "H1", "H2", "H3"]
        for grid, heads in (("attn_head_k", shared), ("attn_head_v", shared),
                            ("attn_head_q", all_heads), ("attn_head_k_by_pos", shared),
                            ("attn_head_out_by_pos", all_heads)):
            sweep = heed.patching.sweep(self.model, TOKENS, others, grid, 11, 12)
            self.assertEqual(len(sweep.column_labels), sweep.values.shape[1], grid)
            self.assertEqual(list(dict.fromkeys(label.split(" ")[0]
                                                for label in sweep.column_labels)), heads, grid)
            if grid.endswith("_by_pos"):
                continue
            shown = json.loads(program(
                "patch", "-m", str(LLAMA), "--clean-tokens", ",".join(map(str, TOKENS)),
                "--corrupted-tokens", ",".join(map(str, others)), "--answer", "#11", "--wrong", "#12",
                "--grid", grid, "--json"))
            self.assertEqual(shown["columns"], sweep.column_labels, grid)


if __name__ == "__main__":
    unittest.main()
