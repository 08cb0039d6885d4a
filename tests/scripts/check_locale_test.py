"""The locale check sees what obeys a locale, and nothing else."""

import unittest

from check_test_case import CheckTestCase

FILE = "src/base/file.cc"


class CheckLocale(CheckTestCase):
    script = "check_locale.py"

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
            self.assert_breach(FILE, "\n" + line + "\n", "src/base/file.cc:2:")

    def test_what_has_no_locale(self):
        for line in ('// std::stod obeys the locale', 'fail("sscanf(text) is not known");',
                     'std::from_chars(begin, end, x);', 'text = fmt::format("{:.3f} L", x);',
                     'text += std::to_string(count);', '::strftime_l(text, 9, f, &date, plain);',
                     '{"isalpha", all_characters<is_letter>},', 'utf8proc_tolower(c);',
                     'std::stoull(text);', 'auto x = restof(text);', 'log(fmt::format("{}L", x));'):
            self.assert_clean(FILE, line + "\n")

    def test_sources(self):
        self.assert_repository_is_clean()


if __name__ == "__main__":
    unittest.main()
