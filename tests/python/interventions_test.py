"""Every edit of heed.interventions, of a model and of a translator, beside what a hook makes of it."""

import unittest

import numpy as np

import heed
from heed import interventions as edit
from support import TestCase, starter

Wrong = heed.errors.InvalidArgument


class Subject:
    """A head of a model, its text and another of as many tokens."""

    def __init__(self, model, text, other, where, mixed, pattern, mask):
        self.model, self.text, self.other, self.where = model, text, other, where
        self.head = int(where[-1])
        self.mixed, self.pattern, self.mask = mixed, pattern, mask

    def arguments(self, text):
        return (dict(source=text[0], target=text[1]) if isinstance(text, tuple)
                else dict(input=text))

    def values(self, model, text, point):
        _, cache = model.run_with_cache(**self.arguments(text), names_filter=[point])
        return np.array(cache[point])

    def logits(self, model, hooks=()):
        return model.run_with_hooks(**self.arguments(self.text), fwd_hooks=list(hooks))


def subjects():
    model = starter()
    ids = model.to_tokens("Late one evening, a fluffy blue hare")[0]
    other = np.roll(ids, 3)
    yield Subject(model, ids, other, "L1H2", "z1", "pattern1", ("self", "none"))
    translator = heed.load("translator")
    source = translator.to_tokens(source="A dog runs.")[0]
    target = translator.to_tokens(target="Ein Hund läuft.")[0]
    turned = (np.roll(source, 1), np.r_[target[:1], target[1:][::-1]])
    for site, mask in (("encoder", ("encoder", "causal")), ("decoder", ("decoder", "none")),
                       ("cross", None)):
        yield Subject(translator, (source, target), turned, site + ".L1H0", site + ".z1",
                      site + ".pattern1", mask)


class Verbs(TestCase):
    def test_are_what_hooks_do(self):
        for subject in subjects():
            of = subject.values
            z, other_z = (of(subject.model, text, subject.mixed)
                          for text in (subject.text, subject.other))
            pattern, other_pattern = (of(subject.model, text, subject.pattern)
                                      for text in (subject.text, subject.other))
            size, where, head = z.shape[-1], subject.where, subject.head
            vector = np.linspace(-1, 1, size)
            mean, own_mean = other_z[0, :, head].mean(0), z[0, :, head].mean(0)
            cut = pattern.copy()
            cut[0, head, 2, 1] = 0
            verbs = [
                (edit.ablate(where), subject.mixed, np.zeros_like(z)),
                (edit.scale(where, 1.5), subject.mixed, 1.5 * z),
                (edit.add(where, vector), subject.mixed, z + vector.astype(np.float32)),
                (edit.mean(where, [subject.other]), subject.mixed,
                 np.broadcast_to(mean, z.shape)),
                (edit.steer(where, 2.5, subject.other, subject.text), subject.mixed,
                 z + 2.5 * (mean - own_mean)),
                (edit.replace(where, subject.other), subject.mixed, other_z),
                (edit.freeze(where, subject.other), subject.pattern, other_pattern),
                (edit.cut(where, [(2, 1)]), subject.pattern, cut),
            ]
            plain = subject.logits(subject.model)
            for made, point, wanted in verbs:
                with self.subTest(where=where, kind=made["kind"]):
                    edited = edit.apply(subject.model, made)
                    all_of = slice(None)
                    at = (all_of, head) if point is subject.pattern else (all_of, all_of, head)

                    def write(values, hook, wanted=wanted, at=at):
                        values[at] = wanted[at]

                    # Sums of a few numbers of about one: 1e-5.
                    self.assert_close(of(edited, subject.text, point)[at], wanted[at], 1e-5)
                    found = subject.logits(edited)
                    self.assert_close(found, subject.logits(subject.model, [(point, write)]), 1e-4)
                    self.assertGreater(float(np.abs(found - plain).max()), 1e-6)

    def test_masks(self):
        for subject in subjects():
            if subject.mask is None:
                continue
            with self.subTest(where=subject.where):
                edited = edit.apply(subject.model, edit.mask(*subject.mask))
                weights = subject.values(edited, subject.text, subject.pattern)
                later = np.triu(np.ones(weights.shape[2:], bool), 1)
                if subject.mask[1] == "causal":
                    self.assertEqual(float(weights[0][:, later].max()), 0.0)
                else:
                    self.assertGreater(float(weights[0][:, later].min()), 0.0)
                self.assert_close(weights.sum(-1), np.ones(weights.shape[:3]), 1e-5)

    def test_that_change_nothing_change_no_bit(self):
        for subject in subjects():
            for made in (edit.add(subject.where, np.zeros(subject.values(
                    subject.model, subject.text, subject.mixed).shape[-1])),
                    edit.replace(subject.where, subject.text),
                    edit.freeze(subject.where, subject.text)):
                self.assert_same_bits(subject.logits(edit.apply(subject.model, made)),
                                      subject.logits(subject.model))


class EditedTranslators(TestCase):
    def setUp(self):
        self.model = heed.load("translator")
        self.edited = edit.apply(self.model, edit.ablate("cross.L1"), edit.mask("encoder"))

    def test_translate(self):
        def zero(values, hook):
            values[:] = 0

        edited = edit.apply(self.model, edit.ablate("cross.L1"))
        self.assertTrue(edited.is_translator)
        found = edited.translate("A dog runs.", beams=1).hypotheses[0]
        wanted = self.model.translate("A dog runs.", beams=1, fwd_hooks=[
            ("decoder.1.hook_cross_attn_out", zero)]).hypotheses[0]
        self.assertEqual(found.tokens, wanted.tokens)
        self.assertAlmostEqual(found.log_probability, wanted.log_probability, places=3)
        self.assertNotEqual(self.model.translate("A dog runs.", beams=1).hypotheses[0].tokens,
                            found.tokens)

    def test_hooks_that_stay_are_obeyed(self):
        seen = []
        self.edited.add_hook("decoder.1.hook_cross_attn_out",
                             lambda values, hook: seen.append(float(np.abs(values).max())))
        self.edited(source="A dog runs.", target="Ein Hund")
        self.assertEqual(seen, [0.0])

    def test_gradients_before_an_edit_are_refused(self):
        scaled = edit.apply(self.model, edit.scale("decoder.L1.mlp", 2))
        with self.assertRaises(heed.errors.Unsupported):
            scaled.run_with_cache(source="A dog runs.", target="Ein Hund",
                                  names_filter="decoder.1.hook_attn_out", incl_bwd=True)

    def test_cut_words(self):
        text = ("A dog runs.", "Ein Hund läuft.")
        edited = edit.apply(self.model, edit.cut_words("cross.L1", text, 2, 1))
        _, cache = edited.run_with_cache(source=text[0], target=text[1], names_filter=["cross.pattern1"])
        _, before = self.model.run_with_cache(source=text[0], target=text[1], names_filter=["cross.pattern1"])
        changed = np.argwhere(np.array(cache["cross.pattern1"]) != np.array(before["cross.pattern1"]))
        self.assertGreater(len(changed), 0)
        self.assertEqual(float(np.array(cache["cross.pattern1"])[tuple(changed.T)].max()), 0.0)

    def test_bad_input(self):
        for made, says in ((edit.ablate("L1H2"), "both stacks"),
                           (edit.ablate("cross.L9"), "cross-attention has layers"),
                           (edit.mask("cross"), "within one text"),
                           (edit.mask("encoder", "half"), "causal or none"),
                           (edit.mean("cross.L1H0.pattern", [("A dog.", "Ein")]), "no mean"),
                           (edit.cut_words("cross", ("A dog.", "Ein"), 90, 0), "word 90")):
            with self.subTest(says=says), self.assertRaisesRegex(Wrong, says):
                edit.apply(self.model, made)


if __name__ == "__main__":
    unittest.main()
