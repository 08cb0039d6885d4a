"""The element check sees every way to touch an element, and nothing else."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_elements.py"


class CheckElements(unittest.TestCase):
    def run_on(self, text, name="block.cc"):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory, "src", "model")
            folder.mkdir(parents=True)
            (folder / "saved.h").write_text("struct Saved {\n  View<float> mean;  // (N)\n"
                                            "  Tensor<float> sums;\n  View<float> part() const;\n};\n",
                                            encoding="utf-8")
            (folder / name).write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, SCRIPT, directory], capture_output=True,
                                  text=True, check=False)

    def assert_found(self, text, line=1):
        result = self.run_on(text)
        self.assertEqual(result.returncode, 1, text)
        self.assertIn(f"src/model/block.cc:{line}: ", result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)

    def assert_clean(self, text):
        result = self.run_on(text)
        self.assertEqual((result.returncode, result.stdout), (0, ""), text)

    def test_calls_of_views(self):
        self.assert_found("void f(View<float> x) {\n  x(0, 1) = 2;\n}\n", 2)
        self.assert_found("void f(View<const float> x) {\n  return g(x(row));\n}\n", 2)
        self.assert_found("  View<T> a, b;\n  c = b(t) * 2;\n", 2)
        self.assert_found("const auto part = all.slice(0, 0, 1);\ny = part(1);\n", 2)
        self.assert_found("y = 1 / saved.mean(row);\n")
        self.assert_found("y = &matrix.view()(row, 0);\n")

    def test_indices(self):
        self.assert_found("Tensor<float> out(Shape{3});\nout[2] = 1;\n", 2)
        self.assert_found("void f(std::span<const float> x) {\n  y = x[at];\n}\n", 2)
        self.assert_found("y = saved.sums[row];\n")
        self.assert_found("y = rows.span()[3];\n")

    def test_pointers(self):
        self.assert_found("float* const values = f(x);\n")
        self.assert_found("const T* const from = f(x);\n")
        self.assert_found("return {rows.data() + first, shape};\n")
        self.assert_found("y = rows.data()[1];\n")

    def test_loops_and_algorithms(self):
        self.assert_found("for (float& value : rows.span()) g(value);\n")
        self.assert_found("std::ranges::copy(from.span(), to.begin());\n")
        self.assert_found("std::fill(begin, end, 0.0F);\n")
        self.assert_found("std::memcmp(a, b, bytes);\n")
        self.assert_found("d_x.fill(0.0F);\n")

    def test_views_of_views_are_none(self):
        self.assert_clean("void f(View<float> x) {\n  g(x[0], x.slice(1, 0, 2), x.reshape({2, 3}));\n"
                          "  const View<float> y(x.data(), shape);\n  h(y.extent(0));\n}\n")
        self.assert_clean("View<float> part(View<float> x) { return x; }\n  y = part(x, 1);\n"
                          "z = saved.part();\n")
        self.assert_clean("Tensor<float> a(shape), b(a.shape());\nkernels::copy(a, b);\n")
        self.assert_clean("Rows::Rows(View<float> x)\n    : x_(x),\n      y_(x) {}\n")

    def test_integers_and_comments_are_none(self):
        self.assert_clean("void f(View<const std::int32_t> tokens) {\n  g(tokens(0, 1), starts[at + 1]);\n}\n")
        self.assert_clean("// x(row) += 1, std::copy(a, b)\n")

    def test_other_folders_are_not_looked_at(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory, "src", "kernels")
            folder.mkdir(parents=True)
            (folder / "elements.cc").write_text("std::fill(begin, end, 0.0F);\n", encoding="utf-8")
            result = subprocess.run([sys.executable, SCRIPT, directory], capture_output=True,
                                    text=True, check=False)
            self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
