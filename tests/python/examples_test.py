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
        self.assertEqual(len(scripts), 13)
        for script in scripts:
            with self.subTest(script.name):
                done = subprocess.run([sys.executable, str(script)], capture_output=True,
                                      text=True, env=os.environ)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.strip())
                self.assertLessEqual(len(script.read_text().splitlines()), 62)


if __name__ == "__main__":
    import unittest
    unittest.main()
