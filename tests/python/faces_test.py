"""One edit in the terminal, in a request and in Python: the same numbers, for one text and for two."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

import numpy as np

import heed
from heed import interventions as edit
from support import PROGRAM, TestCase, golden, program

TEXT = "The fluffy blue hare roamed"
SOURCE, TARGET = "The dog sleeps.", "Der Hund schläft."


def verbs(head, block, branch, vector_file, width):
    """(name, options of the terminal, an intervention of a request, an edit) with points of a model."""
    edges = [(3, 1), (3, 2)]
    written = ",".join(f"{query}>{key}" for query, key in edges)
    vector = [0.25 * (i % 3) for i in range(width)]  # norms take a constant away
    pathlib.Path(vector_file).write_text(json.dumps(vector), encoding="utf-8")
    return [
        ("ablate", ["--ablate", head], {"kind": "ablate", "point": head}, edit.ablate(head)),
        ("scale", ["--scale", f"{branch}=0.5"],
         {"kind": "scale", "point": branch, "factor": 0.5}, edit.scale(branch, 0.5)),
        ("add", ["--add", f"{block}={vector_file}"],
         {"kind": "add", "point": block, "vector": vector}, edit.add(block, vector)),
        ("cut", ["--cut", f"{head}:{written}"],
         {"kind": "cut", "point": head, "edges": edges}, edit.cut(head, edges)),
        ("cut, the rest scaled", ["--cut", f"{head}:{written}", "--renormalise"],
         {"kind": "cut", "point": head, "edges": edges, "renormalise": True},
         edit.cut(head, edges, renormalise=True)),
    ]


class Faces(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([PROGRAM, "explore", "-m", "starter", "--port", "0"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cls.address = next(found.group() for line in cls.server.stdout
                           if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.communicate()

    def ask(self, path, body=None):
        request = urllib.request.Request(
            self.address + path, None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return reply.read()

    def by_terminal(self, model, point, options, file):
        program("trace", "-m", model, "--points", point, "-o", str(file), *options)
        return golden(file)[point]

    def by_request(self, point, body):
        trace = json.loads(self.ask("/api/traces", body))["id"]
        with tempfile.TemporaryFile() as file:
            file.write(self.ask(f"/api/traces/{trace}/arrays/{point}?format=npy"))
            file.seek(0)
            return np.load(file)

    def compare(self, model, point, words, body, texts, points):
        loaded = heed.load(model)
        plain = np.asarray(loaded.run_with_cache(**texts)[1][point])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.safetensors"
            vector = str(pathlib.Path(folder) / "vector.json")
            for name, options, request, change in verbs(*points, vector, plain.shape[-1]):
                with self.subTest(f"{model}, {name}"):
                    terminal = self.by_terminal(model, point, [*words, *options], file)
                    request = self.by_request(point, {**body, "interventions": [request]})
                    python = edit.apply(loaded, change).run_with_cache(**texts)[1][point]
                    self.assert_same_bits(request.reshape(terminal.shape), terminal)
                    self.assert_same_bits(np.asarray(python).reshape(terminal.shape), terminal)
                    self.assertGreater(np.abs(terminal - plain.reshape(terminal.shape)).max(), 1e-3,
                                       "the edit changes something")

    def test_one_text(self):
        self.compare("starter", "blocks.4.hook_resid_post", [TEXT], {"text": TEXT}, {"input": TEXT},
                     ("L1H2", "blocks.1.hook_resid_pre", "L2.mlp"))

    def test_two_texts(self):
        for head, block, branch in (
                ("cross.L1H0", "decoder.1.hook_resid_pre", "decoder.L1.mlp"),
                ("encoder.L0H0", "encoder.1.hook_resid_pre", "encoder.L1.mlp")):
            self.compare("translator", "decoder.1.hook_resid_post",
                         [SOURCE, "--target", TARGET], {"source": SOURCE, "target": TARGET},
                         {"source": SOURCE, "target": TARGET}, (head, block, branch))


if __name__ == "__main__":
    unittest.main()
