// The command line's own view of CLI11, whose header takes seconds to compile and stays behind
// arguments.cc. Handles are small values; `command->add_option(…)->type_name("N")` reads as CLI11's
// own interface does, and means the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heed::cli {

// What is wrong with the text of a value, or nothing: "takes a whole number from 1 to 9, not 'x'".
using Check = std::function<std::string(const std::string&)>;

// One of these words.
Check one_of(std::vector<std::string> words);

// Owned by its command.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  const Option* operator->() const { return this; }

  Option check(Check check) const;
  Option type_name(const std::string& name) const;
  Option description(const std::string& text) const;
  Option group(const std::string& name) const;
  Option required() const;
  Option capture_default_str() const;  // shows the variable's present value as the default
  Option default_str(const std::string& text) const;
  Option expected(int count) const;
  Option expected(int least, int most) const;  // most < 0: any number
  Option delimiter(char delimiter) const;
  Option allow_extra_args(bool allow) const;  // values after the first, as words of their own
  Option take_all() const;                    // an option that is repeated gives all its values
  Option envname(const std::string& name) const;
  Option excludes(Option other) const;
  Option needs(Option other) const;

 private:
  CLI::Option* option_;
};

// A (sub)command; owned by the program's outermost one.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  const Command* operator->() const { return this; }
  const Command& operator*() const { return *this; }

  // Sets `value` where the option is given. Instantiated in arguments.cc for the types that options
  // have: numbers, text, paths, lists of them and optional ones.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& description) const;
  template <class T>
  Option add_option_function(const std::string& names, const std::function<void(const T&)>& use,
                             const std::string& description) const;
  Option add_flag(const std::string& names, bool& value, const std::string& description) const;

  Command add_subcommand(const std::string& name, const std::string& description) const;
  Command get_subcommand(const std::string& name) const;
  Option get_option(const std::string& name) const;
  Command require_subcommand(int least, int most) const;
  bool is_subcommand_given() const;
  // What the command does, once its options are read.
  Command callback(std::function<void()> run) const;
  Command footer(const std::string& text) const;
  std::size_t count(const std::string& option) const;  // how often it was given
  Option help_option() const;

 private:
  CLI::App* app_;
};

}  // namespace heed::cli
