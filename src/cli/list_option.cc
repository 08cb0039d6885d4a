#include "cli/list_option.h"

#include "base/numbers.h"

namespace heed::cli {
namespace {

using Words = std::vector<std::string>;

void append_items(Words& items, const std::string& word, char values_behind) {
  const std::size_t first = items.size();
  for (const std::string_view part : split_list(word)) {
    const bool continues = values_behind != '\0' && items.size() > first &&
                           part.find(values_behind) == std::string_view::npos;
    if (continues) {
      items.back() += "," + std::string(part);
    } else {
      items.emplace_back(part);
    }
  }
}

}  // namespace

Option add_list_option(Command command, const std::string& name, Words& items,
                       const std::string& description, char values_behind) {
  const auto set = [&items, values_behind](const Words& words) {
    items.clear();
    for (const std::string& word : words) append_items(items, word, values_behind);
  };
  return command.add_option_function<Words>(name, set, description)->allow_extra_args(false);
}

Option add_list_option(Command command, const std::string& name, std::string& list,
                       const std::string& description) {
  const auto set = [&list](const Words& words) {
    list.clear();
    for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  };
  return command.add_option_function<Words>(name, set, description)->allow_extra_args(false);
}

}  // namespace heed::cli
