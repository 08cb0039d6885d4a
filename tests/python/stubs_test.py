"""The type stubs say what the extension has, and the package what its documentation needs."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import unittest

import heed
from heed import _heed
from support import SOURCE, TestCase


def stubbed():
    """{name: members of the class, or None for a function or a value}"""
    tree = ast.parse((SOURCE / "python/heed/_heed.pyi").read_text(encoding="utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {one.name if isinstance(one, ast.FunctionDef) else one.target.id
                                for one in node.body}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    return found


def public(names):
    return {name for name in names
            if not name.startswith("_") or name in ("_raise", "__version__")}


class Stubs(TestCase):
    def test_every_name_of_the_extension_and_no_other(self):
        stubs = stubbed()
        self.assertEqual(public(stubs), public(vars(_heed)))
        for name, members in stubs.items():
            value = getattr(_heed, name)
            self.assertEqual(inspect.isclass(value), members is not None, name)
            if members is not None:
                self.assertEqual(public(members), public(vars(value)), name)

    def test_arguments_have_as_many_names(self):
        """Of functions with one signature, which pybind11 writes into their first line."""
        tree = ast.parse((SOURCE / "python/heed/_heed.pyi").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
                continue
            owner = next((one.name for one in tree.body
                          if isinstance(one, ast.ClassDef) and node in one.body), None)
            value = getattr(getattr(_heed, owner), node.name) if owner else getattr(_heed, node.name)
            if isinstance(value, property):
                continue
            line = value.__doc__.splitlines()[0]
            if node.args.vararg:  # several signatures
                self.assertIn("*args", line, f"{owner}.{node.name}")
                continue
            count = len(re.findall(r"\b(?:self|arg\d+): ", line))
            self.assertEqual(count, len(node.args.args), f"{owner}.{node.name}: {line}")

    def test_public_names_are_documented(self):
        for name in heed.__all__:
            value = getattr(heed, name)
            if name.startswith("__"):
                continue
            self.assertTrue(inspect.getdoc(value), name)
            for member, function in inspect.getmembers(value, inspect.isfunction):
                if inspect.isclass(value) and not member.startswith("_") and \
                        issubclass(value, (heed.Model, heed.Training)) and \
                        len(inspect.signature(function).parameters) > 2:
                    self.assertTrue(inspect.getdoc(function), f"{name}.{member}")

    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "there is no mypy")
    def test_a_type_checker_accepts_the_package(self):
        found = subprocess.run(
            [sys.executable, "-m", "mypy", "--no-error-summary", "--ignore-missing-imports",
             "--cache-dir", "/dev/null", str(SOURCE / "python/heed")],
            capture_output=True, text=True, cwd=SOURCE)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)


if __name__ == "__main__":
    unittest.main()
