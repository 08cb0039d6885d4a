import gc
import threading

import numpy as np

import heed
from support import GOLDEN, PROMPT, TestCase, address, program, starter

Wrong = heed.errors.InvalidArgument


class Tokens(TestCase):
    def setUp(self):
        self.model = starter()

    def test_round_trip(self):
        tokens = self.model.to_tokens(PROMPT)
        self.assertEqual((tokens.ndim, tokens.shape[0], tokens.dtype), (2, 1, np.int32))
        self.assertEqual(self.model.to_string(tokens), [PROMPT])
        self.assertEqual(self.model.to_string(tokens[0]), PROMPT)
        self.assertEqual("".join(self.model.to_str_tokens(PROMPT)), PROMPT)
        self.assertEqual(self.model.to_single_str_token(int(tokens[0, 0])),
                         self.model.to_str_tokens(PROMPT)[0])

    def test_single_tokens(self):
        last = self.model.to_str_tokens(PROMPT)[-1]
        token = self.model.to_single_token(last)
        self.assertEqual(self.model.get_token_position(token, PROMPT),
                         self.model.to_tokens(PROMPT).shape[1] - 1)
        with self.assertRaisesRegex(Wrong, "tokens, expected one"):
            self.model.to_single_token(" unhyphenatable words galore")
        with self.assertRaisesRegex(Wrong, "does not occur"):
            self.model.get_token_position(int(token), self.model.to_tokens(PROMPT)[0, :1])

    def test_beginning(self):
        plain = self.model.to_tokens(PROMPT, prepend_bos=False)
        self.assertEqual(self.model.to_tokens(PROMPT, prepend_bos=True).shape[1],
                         plain.shape[1] + 1)

    def test_batches(self):
        rows = self.model.to_tokens([PROMPT, PROMPT])
        self.assertEqual(rows.shape[0], 2)
        ragged = self.model.to_tokens([PROMPT, PROMPT + " the thief."])
        self.assertIsInstance(ragged, list)
        logits = self.model([PROMPT, PROMPT + " the thief."])
        self.assertEqual([each.shape[1] for each in logits], [len(row) for row in ragged])
        self.assert_alike(logits[0], self.model(PROMPT))
        both, _ = self.model.run_with_cache([PROMPT, PROMPT + " the thief."])
        for one, alone in zip(both, logits):
            self.assert_same_bits(one, alone)
        losses = self.model([PROMPT, PROMPT + " the thief."], return_type="loss")
        for loss, text in zip(losses, [PROMPT, PROMPT + " the thief."]):
            self.assertAlmostEqual(loss, self.model.loss(text), delta=1e-5)
        with self.assertRaisesRegex(Wrong, "have the lengths .*expected those of the texts"):
            self.model([PROMPT, PROMPT + " the thief."], token_types=[[0, 0], [0]])

    def test_a_cache_of_texts_of_different_lengths(self):
        texts = [PROMPT, PROMPT + " the thief.", "A"]
        tokens = self.model.to_tokens(texts)
        lengths = [len(row) for row in tokens]
        for names in (None, ["resid_post2", "pattern1", "attn_scores1", "z0", "embed",
                             "ln_final.hook_normalized"]):
            _, cache = self.model.run_with_cache(texts, names)
            self.assertEqual(cache.lengths.tolist(), lengths)
            self.assertEqual(cache.attention_mask.sum(1).tolist(), lengths)
            self.assertEqual(cache.attention_mask.shape, (3, max(lengths)))
            for b, row in enumerate(tokens):
                self.assertEqual(cache.tokens[b][cache.attention_mask[b] == 1].tolist(),
                                 row.tolist())
                _, alone = self.model.run_with_cache(row)
                for name in cache:
                    if name == "unembed.hook_out":
                        continue
                    all_, own = np.asarray(cache[name]), np.asarray(alone[name])
                    self.assertEqual(list(all_.shape), list(cache[name].shape))
                    self.assertEqual(all_.shape[0], 3)
                    if name.endswith(("pattern", "attn_scores")):
                        part, rest = all_[b:b + 1, :, :len(row), :len(row)], all_[b, :, len(row):]
                        wanted = 0 if name.endswith("pattern") else -np.inf
                        self.assertTrue((rest == wanted).all())
                    else:
                        part, rest = all_[b:b + 1, :len(row)], all_[b, len(row):]
                        self.assertFalse(rest.any())
                    self.assert_alike(part, own)
        with self.assertRaisesRegex(Wrong, "only that of one can be removed"):
            cache.remove_batch_dim()

    def test_tiles_and_stacks_of_texts_of_different_lengths(self):
        texts = [PROMPT, PROMPT + " the thief."]
        _, cache = self.model.run_with_cache(texts)
        for b, text in enumerate(texts):
            _, alone = self.model.run_with_cache(text)
            length = int(cache.lengths[b])
            self.assert_alike(cache["pattern", 2][b, 1, :length, :length],
                              alone["pattern", 2][0, 1])
            # The last position is each text's own.
            last = cache.decompose_resid(apply_ln=True, pos_slice=-1)
            self.assert_alike(last[:, b], alone.decompose_resid(apply_ln=True, pos_slice=-1)[:, 0])
            whole = cache.decompose_resid(apply_ln=True)
            self.assertTrue(np.isfinite(whole).all())
            self.assert_alike(whole[:, b, :length], alone.decompose_resid(apply_ln=True)[:, 0])
        with self.assertRaisesRegex(Wrong, "position -9 does not exist"):
            self.model.run_with_cache(["A", PROMPT])[1].decompose_resid(pos_slice=-9)

    def test_hooks_of_texts_of_different_lengths(self):
        texts = [PROMPT, PROMPT + " the thief."]
        for name in ("resid_pre2", "z1", "pattern1", "embed"):
            seen = []

            def hook(values, hook):
                seen.append((hook.text, values.shape))
                values[:, -1] *= 0.5  # of a pattern, the last head's

            together = self.model.run_with_hooks(texts, [(name, hook)])
            self.assertEqual([text for text, _ in seen], [0, 1])
            self.assertTrue(all(shape[0] == 1 for _, shape in seen))
            plain = self.model(texts)
            for b, text in enumerate(texts):
                self.assert_alike(together[b], self.model.run_with_hooks(text, [(name, hook)]))
                self.assertGreater(float(np.abs(together[b] - plain[b]).max()), 1e-3)
            # What hooks left is what a cache holds.
            _, cache = self.model.run_with_cache(texts, name, fwd_hooks=[(name, hook)])
            for b, text in enumerate(texts):
                _, alone = self.model.run_with_cache(text, name, fwd_hooks=[(name, hook)])
                found = np.asarray(cache[name])[b:b + 1]
                own = np.asarray(alone[name])
                self.assert_alike(found[tuple(slice(0, size) for size in own.shape)], own)

    def test_gradients_of_texts_of_different_lengths(self):
        texts = [PROMPT, PROMPT + " the thief."]
        halves = [("z1", lambda gradient, hook: 0.5 * gradient)]
        for target in (None, [(-1, 5, 1.0), (0, 7, -2.0)]):
            for hooks in ([], halves):
                _, cache = self.model.run_with_cache(texts, "resid_pre1", incl_bwd=True,
                                                     logit_target=target, bwd_hooks=hooks)
                for b, text in enumerate(texts):
                    _, alone = self.model.run_with_cache(text, "resid_pre1", incl_bwd=True,
                                                         logit_target=target, bwd_hooks=hooks)
                    own = alone["resid_pre_grad", 1]
                    found = cache["resid_pre_grad", 1][b:b + 1, :own.shape[1]]
                    self.assertGreater(float(np.abs(own).max()), 1e-6)
                    self.assertLess(float(np.abs(found - own).max()),
                                    1e-5 * float(np.abs(own).max()))

    def test_generations_of_several_prompts(self):
        prompts = [PROMPT, PROMPT + " the thief."]
        together = self.model.generate(prompts, 6, temperature=0)
        for found, prompt in zip(together, prompts):
            self.assertEqual(found.finish().tokens,
                             self.model.generate(prompt, 6, temperature=0).finish().tokens)
        self.assertEqual(len(self.model.generate(self.model.to_tokens([PROMPT] * 3), 2)), 3)


class Passes(TestCase):
    def setUp(self):
        self.model = starter()

    def test_inputs_of_every_kind_are_the_same(self):
        tokens = self.model.to_tokens(PROMPT)
        logits = self.model(PROMPT)
        strided = np.repeat(tokens, 2, 1)[:, ::2]
        fortran = np.asfortranarray(np.repeat(tokens, 2, 0))
        self.assertFalse(strided.flags.c_contiguous and strided.size > 1)
        for same in (tokens, tokens[0], tokens.tolist(), tokens[0].tolist(), strided, fortran[:1],
                     tokens.astype(np.uint16), tokens.astype(np.int64), [PROMPT], tokens[::-1]):
            self.assert_same_bits(self.model(same), logits)
        self.assert_same_bits(self.model(fortran)[1], logits[0])

    def test_loss(self):
        losses = self.model.loss(PROMPT, per_token=True)
        self.assertEqual(losses.shape, (1, self.model.to_tokens(PROMPT).shape[1] - 1))
        self.assertAlmostEqual(self.model.loss(PROMPT), float(losses.mean()), places=6)
        logits, loss = self.model(PROMPT, return_type="both")
        self.assertAlmostEqual(loss, self.model.loss(PROMPT), places=5)
        self.assertIsNone(self.model(PROMPT, return_type=None))
        self.assertEqual(logits.shape[-1], self.model.cfg.d_vocab)

    def test_bad_input(self):
        model = self.model
        cases = [
            ([], "token"),
            (np.zeros((0,), np.int32), "token"),
            (np.zeros((2, 0), np.int32), "token"),
            (np.zeros((1, 2, 3), np.int32), r"shape \(1, 2, 3\), expected"),
            (3, r"shape \(\), expected"),
            ([1.5, 2.5], "type float64, expected integers"),
            (np.array(["a"], object), "type object"),
            ([None, 1], "type object"),
            ([[1, 2], [3]], None),  # two texts
            ([1, 1 << 40], "does not fit 32 bits"),
            ([1, -1], "-1"),
            ([model.cfg.d_vocab], str(model.cfg.d_vocab)),
            (np.zeros((model.cfg.n_ctx + 1,), np.int32), str(model.cfg.n_ctx)),
            ("", "empty"),
        ]
        for value, message in cases:
            if message is None:
                self.assertEqual(len(model(value)), 2)
                continue
            with self.assertRaisesRegex(Wrong, message, msg=repr(value)[:60]):
                model(value)
        with self.assertRaisesRegex(Wrong, "return_type is 'nothing'"):
            model(PROMPT, return_type="nothing")
        with self.assertRaisesRegex(Wrong, "at least two tokens"):
            model.loss([1])

        class Device:
            device = "cuda:7"

            def __dlpack_device__(self):
                return (2, 7)

        with self.assertRaisesRegex(Wrong, "device cuda:7, expected the CPU"):
            model(Device())

    def test_errors_are_typed(self):
        from heed import _heed
        for code, kind in heed.errors.BY_CODE.items():
            with self.assertRaisesRegex(kind, "the message") as caught:
                _heed._raise(code, "the message")
            self.assertIsInstance(caught.exception, heed.Error)
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(heed.Error) as caught:
            _heed._raise("not_found", "a\x1b]0;x\x07\n\u009b\u202e")
        self.assertEqual(str(caught.exception), r"a\x1B]0;x\x07\n\u{9B}\u{202E}")
        self.assertTrue(issubclass(heed.errors.InvalidArgument, ValueError))
        self.assertTrue(issubclass(heed.errors.OutOfMemory, MemoryError))
        with self.assertRaisesRegex(heed.errors.NotFound, "no model 'no-such-model'|no-such-model"):
            heed.load("no-such-model")
        with self.assertRaisesRegex(Wrong, "no dtype 'f16': expected f32"):
            heed.load("starter", dtype="f16")

    def test_dtypes(self):
        exact = self.model(PROMPT)
        for dtype, tolerance in (("bf16", 0.05), ("int8", 0.05), ("int4", 0.5)):
            model = heed.load("starter", dtype=dtype)
            self.assertEqual(model.cfg.dtype, dtype)
            self.assert_close(model(PROMPT), exact, tolerance)
            self.assertFalse(model.W_Q.flags.writeable)

    def test_closed(self):
        model = heed.load("starter")
        generation = model.generate(PROMPT, 3)
        model.close()
        self.assertTrue(model.closed)
        for use in (lambda: model(PROMPT), lambda: model.run_with_cache([1, 2]),
                    lambda: model.W_E, lambda: model.generate(PROMPT),
                    lambda: model.to_tokens("a")):
            with self.assertRaisesRegex(Wrong, "the model is closed"):
                use()
        self.assertEqual(len(generation.finish().tokens), 3)  # begun before, and keeps the weights
        with heed.load("starter") as other:
            other(PROMPT)
        self.assertTrue(other.closed)

    def test_loads_and_drops(self):
        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        directory = str(GOLDEN / "families" / "llama")

        def work():
            model = heed.load(directory)
            _, cache = model.run_with_cache([1, 2, 3])
            return cache["q", 0].sum()

        for _ in range(100):
            work()
        before = resident()
        for _ in range(1000):
            work()
        self.assertLess(resident() - before, 4 << 20)

    def test_closing_while_others_compute(self):
        model = heed.load("starter")
        rows = np.repeat(model.to_tokens(PROMPT), 64, 0)
        found = []

        def work():
            for _ in range(20):
                try:
                    found.append(model(rows).shape)
                except Wrong:
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        model.close()
        for thread in threads:
            thread.join()
        self.assertLessEqual(len(found), 80)


class Generations(TestCase):
    def setUp(self):
        self.model = starter()

    def test_streams(self):
        generation = self.model.generate(PROMPT, 16, seed=7)
        steps = list(generation)
        self.assertEqual("".join(map(str, steps)), generation.text)
        self.assertEqual([step.token for step in steps if step.token is not None],
                         generation.tokens)
        self.assertIn(generation.finish_reason, ("length", "stop_token"))
        again = self.model.generate(PROMPT, 16, seed=7).finish()
        self.assertEqual(again.tokens, generation.tokens)
        self.assertEqual(steps[0].logits.shape, (self.model.cfg.d_vocab,))
        self.assert_close(steps[0].logits, self.model(PROMPT)[0, -1], 1e-5)

    def test_equals_the_command_line(self):
        text = self.model.generate(PROMPT, 12, temperature=0).finish().text
        shown = program("generate", "-m", "starter", "-n", "12", "--temp", "0", "-p", PROMPT)
        self.assertIn(text.strip(), shown)

    def test_greedy_is_the_likeliest(self):
        ids = self.model.to_tokens(PROMPT)[0].tolist()
        for step in self.model.generate(PROMPT, 4, temperature=0):
            if step.token is None:
                continue
            self.assertEqual(step.token, int(self.model(ids)[0, -1].argmax()))
            ids.append(step.token)

    def test_stops(self):
        text = self.model.generate(PROMPT, 12, temperature=0).finish().text
        word = text.split()[1]
        stopped = self.model.generate(PROMPT, 12, temperature=0, stop=word).finish()
        self.assertEqual(stopped.finish_reason, "stop_string")
        self.assertEqual(stopped.text, text[:text.index(word)])

    def test_bad_options(self):
        for options, message in (({"max_new_tokens": -1}, "0 or more, not -1"),
                                 ({"temperature": -1.0}, "temperature"), ({"top_p": 2.0}, "top"),
                                 ({"stop": [""]}, "stop")):
            with self.assertRaisesRegex(Wrong, message):
                self.model.generate(PROMPT, **options).finish()
        with self.assertRaisesRegex(Wrong, "at least one token"):
            self.model.generate([]).finish()


class Weights(TestCase):
    def setUp(self):
        self.model = heed.load("starter")
        self.cfg = self.model.cfg

    def test_shapes(self):
        cfg, model = self.cfg, self.model
        shapes = {"W_Q": (cfg.n_layers, cfg.n_heads, cfg.d_model, cfg.d_head),
                  "W_O": (cfg.n_layers, cfg.n_heads, cfg.d_head, cfg.d_model),
                  "W_in": (cfg.n_layers, cfg.d_model, cfg.d_mlp),
                  "W_out": (cfg.n_layers, cfg.d_mlp, cfg.d_model),
                  "W_E": (cfg.d_vocab, cfg.d_model), "W_U": (cfg.d_model, cfg.d_vocab)}
        for name, shape in shapes.items():
            self.assertEqual(getattr(model, name).shape, shape, name)
        self.assertEqual(address(model.W_Q[1]), address(model.weight("blocks.1.attn.W_Q")))
        for name in model.weight_names:
            view = model.weight(name)
            self.assertFalse(view.flags.owndata)
            self.assertEqual(address(view), address(model.weight(name)))
        with self.assertRaisesRegex(heed.errors.NotFound, "did you mean 'blocks.0.attn.W_Q'"):
            model.weight("blocks.0.attn.W_QQ")

    def test_compute_the_activations(self):
        _, cache = self.model.run_with_cache(PROMPT)
        x = cache["normalized", 0, "ln1"] * self.model.weight("blocks.0.ln1.w") + \
            self.model.weight("blocks.0.ln1.b")
        query = np.einsum("btc,hcd->bthd", x, self.model.W_Q[0]) + \
            self.model.weight("blocks.0.attn.b_Q")
        self.assert_close(cache["q", 0], query)
        out = np.einsum("bthd,hdc->btc", cache["z", 0], self.model.W_O[0]) + \
            self.model.weight("blocks.0.attn.b_O")
        self.assert_close(cache["attn_out", 0], out)
        neurons = cache["post", 0] @ self.model.W_out[0] + self.model.weight("blocks.0.mlp.b_out")
        self.assert_close(cache["mlp_out", 0], neurons)
        logits = cache["unembed.hook_in"] @ self.model.W_U
        self.assert_close(self.model(PROMPT), logits)

    def test_changes_take_effect(self):
        before = self.model(PROMPT)
        self.model.W_O[...] = 0
        self.model.weight("attn.b_O")[...] = 0
        _, cache = self.model.run_with_cache(PROMPT)
        self.assertEqual(float(np.abs(cache["attn_out", 0]).max()), 0.0)
        self.assertFalse(np.array_equal(self.model(PROMPT), before))


class Names(TestCase):
    def test_shorthands(self):
        for arguments, name in ((("k", 6), "blocks.6.attn.hook_k"),
                                (("pre2",), "blocks.2.mlp.hook_pre"),
                                (("embed",), "hook_embed"),
                                (("normalized", 27, "ln2"), "blocks.27.ln2.hook_normalized"),
                                (("scale4ln1",), "blocks.4.ln1.hook_scale"),
                                (("pos_embed",), "hook_pos_embed"),
                                (("resid_post", 1), "blocks.1.hook_resid_post"),
                                (("attn_logits", 0), "blocks.0.attn.hook_attn_scores"),
                                (("hook_embed",), "hook_embed")):
            self.assertEqual(heed.get_act_name(*arguments), name)


class Padded(TestCase):
    def test_padded_texts_are_those_of_their_lengths(self):
        model = starter()
        texts = ["The fox waited in the forest", "The murderer was", "A hare"]
        rows = [model.to_tokens(text)[0] for text in texts]
        longest = max(map(len, rows))
        for left in (False, True):
            tokens, mask = np.full((3, longest), 7), np.zeros((3, longest), int)
            for b, row in enumerate(rows):
                at = slice(longest - len(row), None) if left else slice(0, len(row))
                tokens[b, at], mask[b, at] = row, 1
            wanted = model(texts)
            for found, one in zip(model(tokens, attention_mask=mask), wanted):
                self.assert_same_bits(found, one)
            logits, cache = model.run_with_cache(tokens, attention_mask=mask.astype(bool))
            self.assert_same_bits(logits[1], wanted[1])
            self.assertEqual(cache.lengths.tolist(), [len(row) for row in rows])
            losses = model(tokens, "loss", attention_mask=mask)
            self.assertEqual(losses, model(texts, "loss"))
        for wrong in (mask[:, :-1], mask[0], 2 * mask, 0 * mask, np.eye(longest)[:3] + 0.5,
                      np.array([[1, 0, 1] + [0] * (longest - 3)] * 3)):
            with self.assertRaisesRegex(heed.errors.InvalidArgument, "attention_mask"):
                model(tokens, attention_mask=wrong)


if __name__ == "__main__":
    import unittest
    unittest.main()
