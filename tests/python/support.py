"""What the tests share: the embedded model, goldens, other programs."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

SOURCE = pathlib.Path(os.environ.get("HEED_SOURCE", pathlib.Path(__file__).parents[2]))
GOLDEN = SOURCE / "tests" / "golden"
PROGRAM = os.environ.get("HEED_PROGRAM", str(SOURCE / "build/release/bin/heed"))
sys.path.insert(0, str(GOLDEN))

import heed  # noqa: E402
import safetensors_by_hand  # noqa: E402

PROMPT = "The murderer was"


def starter():
    """The embedded model, loaded once."""
    if not hasattr(starter, "model"):
        starter.model = heed.load("starter")
    return starter.model


def golden(path):
    return safetensors_by_hand.read(path)


def program(*arguments):
    """What the command line prints."""
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def address(array):
    return array.__array_interface__["data"][0]


class TestCase(unittest.TestCase):
    def assert_close(self, found, wanted, tolerance=1e-5, what=""):
        """Relative to the largest number of `wanted`; infinities must be equal."""
        found, wanted = np.asarray(found), np.asarray(wanted)
        self.assertEqual(found.shape, wanted.shape, what)
        infinite = ~np.isfinite(wanted)
        self.assertTrue((found[infinite] == wanted[infinite]).all(), what)
        if infinite.all():
            return
        scale = max(np.abs(wanted[~infinite]).max(), 1e-30)
        self.assertLessEqual(np.abs(found[~infinite] - wanted[~infinite]).max() / scale, tolerance,
                             what)

    def assert_same_bits(self, found, wanted, what=""):
        self.assertEqual(np.ascontiguousarray(found).tobytes(),
                         np.ascontiguousarray(wanted).tobytes(), what)

    def assert_alike(self, found, alone):
        """Sums of many rows have another order: a relative 2e-6 of the largest."""
        self.assertEqual(found.shape, alone.shape)
        limit = 2e-6 * max(1.0, float(np.abs(alone[np.isfinite(alone)]).max()))
        finite = np.isfinite(alone)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        self.assertLessEqual(float(np.abs(found[finite] - alone[finite]).max()), limit)


def json_of(text):
    return json.loads(text)
