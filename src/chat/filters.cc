#include "chat/filters.h"

#include <algorithm>

namespace heed::chat {

const Filter* find_filter(std::string_view name) {
  for (const auto filters :
       {text_filters(), list_filters(), choice_filters(), group_filters(), markup_filters()}) {
    const auto found = std::ranges::find(filters, name, &Filter::name);
    if (found != filters.end()) return &*found;
  }
  return nullptr;
}

}  // namespace heed::chat
