"""The locale check sees what obeys a locale, and nothing else."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_locale.py"


class CheckLocale(unittest.TestCase):
    def run_on(self, line):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "src", "base", "file.cc")
            path.parent.mkdir(parents=True)
            path.write_text("\n" + line + "\n", encoding="utf-8")
            return subprocess.run([sys.executable, SCRIPT, directory], capture_output=True,
                                  text=True, check=False)

    def test_breaches(self):
        for line in ('double x = std::stod(text);', 'float x = stof(text);',
                     'x = std::strtod(text.c_str(), nullptr);', 'x = atof(text);',
                     'std::printf("%g", x);', 'snprintf(text, 9, "%f", x);',
                     'sscanf(text, "%lf", &x);', 'std::ostringstream out;',
                     'std::istringstream in(text);', 'std::stringstream both;',
                     'letter = std::tolower(letter);',
                     'if (isalpha(static_cast<unsigned char>(c))) {}',
                     'std::strftime(text, 9, format, &date);', 'setlocale(LC_ALL, "");',
                     'std::locale::global(std::locale("de_DE"));',
                     'text = fmt::format("{:L}", x);', 'text = fmt::format("{:.3Lf}", x);',
                     'text += std::to_string(0.5);',
                     'text += std::to_string(static_cast<double>(x));'):
            result = self.run_on(line)
            self.assertEqual(result.returncode, 1, line)
            self.assertIn("src/base/file.cc:2:", result.stdout, line)

    def test_what_has_no_locale(self):
        for line in ('// std::stod obeys the locale', 'fail("sscanf(text) is not known");',
                     'std::from_chars(begin, end, x);', 'text = fmt::format("{:.3f} L", x);',
                     'text += std::to_string(count);', '::strftime_l(text, 9, f, &date, plain);',
                     '{"isalpha", all_characters<is_letter>},', 'utf8proc_tolower(c);',
                     'std::stoull(text);', 'auto x = restof(text);', 'log(fmt::format("{}L", x));'):
            result = self.run_on(line)
            self.assertEqual((result.returncode, result.stdout), (0, ""), line)

    def test_sources(self):
        result = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
