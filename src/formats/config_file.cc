#include "formats/config_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "formats/format.h"

namespace heed {
namespace {

constexpr std::size_t largest_config_file = std::size_t{16} << 20;

// Python's numbers that are no JSON, and how they stand in a document: after a character of the
// private area.
constexpr std::string_view special_numbers[] = {"NaN", "Infinity", "-Infinity"};
constexpr std::string_view mark = "\uE000";

std::string quoted(std::string_view number) { return fmt::format("\"{}{}\"", mark, number); }

// With these numbers, outside of strings, as strings.
std::string with_quoted_numbers(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto number = std::ranges::find_if(
        special_numbers, [&](std::string_view name) { return rest.starts_with(name); });
    if (!in_string && number != std::end(special_numbers)) {
      result += quoted(*number);
      at += number->size();
      continue;
    }
    const std::size_t length =
        in_string && text[at] == '\\' ? std::min<std::size_t>(2, rest.size()) : 1;
    if (text[at] == '"') in_string = !in_string;
    result += rest.substr(0, length);
    at += length;
  }
  return result;
}

}  // namespace

Architecture architecture_from_json(const Json& document, const std::string& source) {
  const ConfigFields fields(document, source);
  return read_described(format_of_config(fields), fields);
}

StackSpecification gpt_config_from_json(const Json& document, const std::string& source) {
  const ConfigFields fields(document, source);
  const Format& format = format_of_config(fields);
  require_one_stack(format, source);
  return read_described(format, fields).decoder();
}

OrderedJson architecture_to_json(const Architecture& architecture) {
  return format_of(architecture).write(architecture);
}

bool can_be_written(const Architecture& architecture) {
  return std::ranges::any_of(formats(),
                             [&](const Format& format) { return format.expresses(architecture); });
}

OrderedJson gpt_config_to_json(const StackSpecification& config) {
  return architecture_to_json({.stacks = {config}});
}

Json parse_config(std::string_view text, const std::string& source) {
  return parse_json(with_quoted_numbers(text), source);
}

OrderedJson parse_ordered_config(std::string_view text, const std::string& source) {
  parse_config(text, source);  // refuses what is wrong
  return OrderedJson::parse(with_quoted_numbers(text));
}

Json read_config_document(const std::filesystem::path& file) {
  return parse_config(read_text_file(file, largest_config_file), file.string());
}

OrderedJson read_ordered_config(const std::filesystem::path& file) {
  return parse_ordered_config(read_text_file(file, largest_config_file), file.string());
}

std::string config_text(const OrderedJson& document) {
  std::string text = document.dump(2) + "\n";
  for (const std::string_view number : special_numbers) {
    const std::string written = quoted(number);
    for (std::size_t at = text.find(written); at != std::string::npos;
         at = text.find(written, at)) {
      text.replace(at, written.size(), number);
    }
  }
  return text;
}

StackSpecification read_gpt_config(const std::filesystem::path& file) {
  return gpt_config_from_json(read_config_document(file), file.string());
}

}  // namespace heed
