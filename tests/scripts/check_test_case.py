"""What tests of the checks in scripts/ share."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


class CheckTestCase(unittest.TestCase):
    """Of the check that `script` names."""

    script = ""

    def run_check(self, *folder):
        return subprocess.run([sys.executable, SCRIPTS / self.script, *folder],
                              capture_output=True, text=True, check=False)

    def assert_clean(self, file, text):
        self.assertEqual(self.check(file, text), (0, ""), text)

    def assert_breach(self, file, text, *parts):
        status, said = self.check(file, text)
        self.assertEqual(status, 1, text)
        for part in parts:
            self.assertIn(part, said)

    def assert_repository_is_clean(self):
        result = self.run_check()
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def check(self, file, text):
        """Status and output where `file` is all that there is."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            result = self.run_check(directory)
        return result.returncode, result.stdout
