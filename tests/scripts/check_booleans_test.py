"""The check of headers sees boolean parameters, and nothing else."""

import unittest

from check_test_case import CheckTestCase

FILE = "src/model/file.h"


class CheckBooleans(CheckTestCase):
    script = "check_booleans.py"

    def test_breaches(self):
        for line in ("void f(bool a);", "void f(int a, bool b);", "void f(bool);", "int f(const bool a) { return 1; }",
                     "void f(int a, const bool& b, int c);", "void f(int a = g(1, {2}),\n       bool b = false);",
                     "explicit Thing(std::vector<int> a, bool b);", "inline bool operator()(bool a) const;",
                     "const auto add = [&](int a, bool first) {};"):
            self.assert_breach(FILE, line, f"{FILE}:{1 + line.count(chr(10))}: ", "has a boolean parameter")
        self.assert_breach("include/heed/file.h", "void allow(bool a);", "'allow'")

    def test_others(self):
        for line in ("bool f();", "struct A {\n  int a;\n  bool b = false;\n};", "bool a = false, b = true;",
                     "void f(bool& found);", "// f(bool a)", 'f("(bool a)");', "std::variant<int, bool, double> a;",
                     "std::map<int, bool> g(int a);", "std::function<bool(int)> a;", "template <int a, bool b>\nint f();",
                     "void f(boolean a);", "if (bool a = f()) {}", "enum class A { a, b };\nvoid f(A a);"):
            self.assert_clean(FILE, line)

    def test_values_are_listed_by_file_and_function(self):
        self.assert_clean("src/base/error.h", "void require(bool condition, int code);")
        self.assert_breach("src/base/error.h", "void ensure(bool condition);", "'ensure'")
        self.assert_breach("src/base/other.h", "void require(bool condition);", "'require'")

    def test_repository(self):
        self.assert_repository_is_clean()


if __name__ == "__main__":
    unittest.main()
