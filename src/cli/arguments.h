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
  Option expected(int min, int max);  // max < 0: any number
  Option delimiter(char delimiter);
  Option refuse_extra_args();  // CLI11's allow_extra_args(false): one word gives one value
  Option take_all();           // an option that is repeated gives all its values
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
  Command require_subcommand(int min, int max);
  bool has_parsed_subcommand() const;
  // Runs the command after its options are parsed.
  Command callback(std::function<void()> run);
  Command footer(const std::string& text);
  std::size_t count(const std::string& option) const;  // how often it was given
  Option help_option();

 private:
  CLI::App* app_;
};

// Checks of numbers, whose messages say what they refuse and what was expected.

// A whole number from `min` to `max`, both included; signs that would wrap around in an unsigned
// number are refused, too.
Check between(std::uint64_t min, std::uint64_t max);
Check at_least(std::uint64_t min);

// What seeds a generator of random numbers: any whole number of 64 bits.
Check any_seed();

// A number of seconds, fractions too.
Check seconds_above_zero();
Check seconds_from_zero();

// A list, the same way in every command: "--points A,B" or "--points A --points B", never several
// words after one option. `value_separator`, where given, is what separates an item from its value
// ('=' or ':'): commas in a value belong to it, as in "L1H0:7>3,7>4". Throws
// Error{invalid_argument} for an empty item.
Option add_list_option(Command command, const std::string& name, std::vector<std::string>& items,
                       const std::string& description, char value_separator = '\0');

// The same as one text with commas, as parse_indices takes it.
Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description);

}  // namespace heed::cli
