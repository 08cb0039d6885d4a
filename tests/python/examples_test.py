"""Runs every example in a process of its own."""

import os
import subprocess
import sys

from support import SOURCE, TestCase

EXAMPLES = SOURCE / "examples" / "python"
HELPERS = {"random_checkpoint.py"}


class Examples(TestCase):
    def test_all_run(self):
        scripts = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in HELPERS)
        self.assertEqual(len(scripts), 17)
        for script in scripts:
            with self.subTest(script.name):
                done = subprocess.run([sys.executable, str(script)], capture_output=True,
                                      text=True, env=os.environ)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.strip())
                self.assertLessEqual(len(script.read_text().splitlines()), 62)

    def test_the_readme_prints_what_it_says(self):
        readme = (SOURCE / "README.md").read_text()
        program = readme.split("```python\n")[1].split("```")[0]
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, attended, logits = done.stdout.strip().rsplit("\n", 2)
        word, weight = attended.split()
        self.assertEqual(word, "blue")
        self.assertIn(f"#  {word} {float(weight):.3f}", program)
        before, after = map(float, logits.split())
        self.assertIn(f"# {before:.3f} {after:.3f}:", program)


if __name__ == "__main__":
    import unittest
    unittest.main()
