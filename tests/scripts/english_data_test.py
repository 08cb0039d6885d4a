"""Lists of words among books: how many, and that what comes next in them can be told from the list."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

scripts = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(scripts))
import english_data  # noqa: E402

WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
MANY = [first + last for first in WORDS for last in "abcdefghijklmnopqrstuvwxyz"]


class EnglishData(unittest.TestCase):
    def test_a_list_copies_stretches_of_itself(self):
        rng = random.Random(3)

        def told(line):
            """The share of words that followed the word before them at an earlier place, too."""
            pairs = list(zip(line, line[1:]))
            return sum(pair in pairs[:i] for i, pair in enumerate(pairs)) / len(pairs)

        lists = [english_data.copying_list(rng, MANY, 150).split() for _ in range(20)]
        self.assertEqual({len(line) for line in lists}, {150})
        shuffled = [rng.sample(line, len(line)) for line in lists]
        self.assertGreater(sum(map(told, lists)) / 20, 0.5)
        self.assertLess(sum(map(told, shuffled)) / 20, 0.2)

    def test_books_stay_and_lists_have_their_share(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            paragraphs = [f"This is paragraph {i} of a story." for i in range(4000)]
            books = "\n\n".join(paragraphs[:2000]) + english_data.END + "\n\n".join(paragraphs[2000:])
            (folder / "books.txt").write_text(books, encoding="utf-8")
            vocabulary = {english_data.SPACE + word: i for i, word in enumerate(WORDS)}
            vocabulary.update({"nospace": 100, english_data.SPACE + "x": 101})
            (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
            run = [sys.executable, scripts / "english_data.py", folder / "books.txt",
                   folder / "tokenizer.json", "--words", "30", "--share", "0.2"]
            text = subprocess.run(run, capture_output=True, check=True, encoding="utf-8").stdout
            documents = [document.strip() for document in text.split(english_data.END)]
            lists = [document for document in documents if document and set(document.split()) <= set(WORDS)]
            kept = "\n\n".join(document for document in documents if document and document not in lists)
            self.assertEqual(kept.split("\n\n"), paragraphs)
            self.assertAlmostEqual(sum(map(len, lists)) / len(text), 0.2, delta=0.03)
            again = subprocess.run(run, capture_output=True, check=True, encoding="utf-8").stdout
            self.assertEqual(again, text)

    def test_a_vocabulary_without_words_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "tokenizer.json"
            path.write_text(json.dumps({"model": {"vocab": {"a": 0}}}))
            with self.assertRaises(SystemExit):
                english_data.whole_words(path)


if __name__ == "__main__":
    unittest.main()
