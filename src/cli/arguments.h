// A thin wrapper of CLI11, whose header takes seconds to compile and is included only in
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

// The error of a value, such as "takes a whole number from 1 to 9, not 'x'", or nothing if it is
// valid.
using Check = std::function<std::string(const std::string&)>;

// One of these words.
Check one_of(std::vector<std::string> words);

// Owned by its command.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* operator->() { return this; }

  Option check(Check check);
  Option type_name(const std::string& name);
  Option description(const std::string& text);
  Option group(const std::string& name);
  Option required();
  Option capture_default_str();  // shows the variable's present value as the default
  Option default_str(const std::string& text);
  Option expected(int count);
  Option expected(int least, int most);  // most < 0: any number
  Option delimiter(char delimiter);
  Option allow_extra_args(bool allow);  // values after the first, as words of their own
  Option take_all();                    // an option that is repeated gives all its values
  Option envname(const std::string& name);
  Option excludes(Option other);
  Option needs(Option other);

 private:
  CLI::Option* option_;
};

// A (sub)command; owned by the program's outermost one.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  Command* operator->() { return this; }
  const Command* operator->() const { return this; }
  Command& operator*() { return *this; }
  const Command& operator*() const { return *this; }

  // Sets `value` if the option is given. Defined for bool, 32-bit and 64-bit integers, double,
  // strings, and lists and optionals of them.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& description);
  template <class T>
  Option add_option_function(const std::string& names, const std::function<void(const T&)>& use,
                             const std::string& description);
  Option add_flag(const std::string& names, bool& value, const std::string& description);
  Option add_flag_function(const std::string& names, const std::function<void()>& use,
                           const std::string& description);

  Command add_subcommand(const std::string& name, const std::string& description);
  Command get_subcommand(const std::string& name);
  Option get_option(const std::string& name);
  Command require_subcommand(int count = 1);
  Command require_subcommand(int least, int most);
  bool has_parsed_subcommand() const;
  // Runs the command after its options are parsed.
  Command callback(std::function<void()> run);
  Command footer(const std::string& text);
  std::size_t count(const std::string& option) const;  // how often it was given
  Option help_option();

 private:
  CLI::App* app_;
};

}  // namespace heed::cli
