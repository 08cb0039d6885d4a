#include "formats/config_file.h"

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "formats/format.h"

namespace heed {
namespace {

constexpr std::size_t largest_config_file = std::size_t{1} << 20;

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

Json read_config_document(const std::filesystem::path& file) {
  return parse_json(read_text_file(file, largest_config_file), file.string());
}

StackSpecification read_gpt_config(const std::filesystem::path& file) {
  return gpt_config_from_json(read_config_document(file), file.string());
}

}  // namespace heed
