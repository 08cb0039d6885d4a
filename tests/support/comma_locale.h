// A process whose numbers have a decimal comma, as in German.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <locale>
#include <string>

#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed::testing {

// Makes such a locale and sets it, for C and C++, until the end of the scope. Where the system has
// no German to make it from, it is made of its numbers alone. Check is_set(): a machine without
// localedef has none.
class CommaLocale {
 public:
  CommaLocale() {
    write_text_file(directory_ / "comma",
                    "LC_NUMERIC\n"
                    "decimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
                    "END LC_NUMERIC\n");
    const std::string into = " '" + (directory_ / "de_DE.UTF-8").string() + "' >/dev/null 2>&1";
    const std::string german = "localedef -i de_DE -f UTF-8 --no-archive" + into;
    const std::string own = "localedef -c -i '" + (directory_ / "comma").string() +
                            "' -f ANSI_X3.4-1968 --no-archive" + into;
    // localedef has a status of its own for warnings.
    if (std::system(german.c_str()) != 0 && std::system(own.c_str()) < 0) return;
    ::setenv("LOCPATH", directory_.path().c_str(), 1);
    try {
      before_ = std::locale::global(std::locale("de_DE.UTF-8"));
    } catch (const std::runtime_error&) {
      ::unsetenv("LOCPATH");
      return;
    }
    is_set_ = std::strtod("1,5", nullptr) == 1.5;
  }
  ~CommaLocale() {
    std::locale::global(before_);
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool is_set() const { return is_set_; }

 private:
  TemporaryDirectory directory_;
  std::locale before_ = std::locale::classic();
  bool is_set_ = false;
};

}  // namespace heed::testing
