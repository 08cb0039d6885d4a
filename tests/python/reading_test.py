"""What models have read, and the words of texts that they have not."""

import heed
from support import TestCase


class Reading(TestCase):
    def test_the_starter_names_the_words_that_it_has_not_read(self):
        model = heed.load("starter")
        self.assertEqual(model.read.words, 1115)
        self.assertIn("stories", model.read.title)
        text = "Café pizza: the hare ate pizza"
        unread = model.unread(text)
        self.assertEqual([word.text for word in unread.words], ["Café", "pizza", "pizza"])
        for word in unread.words:
            self.assertEqual(text.encode()[word.begin:word.end].decode(), word.text)
        self.assertEqual(unread.of, 5)
        self.assertEqual(str(unread), unread.note)
        self.assertIn("2 of these 5 words (Café, pizza)", unread.note)
        self.assertEqual(model.unread("The hare saw the fox.").note, "")

    def test_the_translator_too(self):
        translator = heed.load("translator")
        self.assertGreater(translator.read.target_words, translator.read.words)
        self.assertEqual([word.text for word in translator.unread("The dog barks.").words], ["barks"])
        self.assertEqual(translator.unread("The dog sleeps.").words, [])


if __name__ == "__main__":
    import unittest
    unittest.main()
