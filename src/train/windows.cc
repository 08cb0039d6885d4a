#include "train/windows.h"

#include <algorithm>

namespace heed {

std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length) {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> buffer(std::size_t{1} << 16);
  for (std::int64_t begin = 0; begin < tokens.size(); begin += std::ssize(buffer)) {
    const std::int64_t count = std::min(std::ssize(buffer), tokens.size() - begin);
    tokens.read(begin, std::span(buffer).first(static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = begin + i;
      const bool has_target = position + 1 < tokens.size();
      const bool starts_document = buffer[static_cast<std::size_t>(i)] == end_of_text;
      const bool goes_on = position - starts.back() == sequence_length;
      if (has_target && position > 0 && (starts_document || goes_on)) starts.push_back(position);
    }
  }
  return starts;
}

}  // namespace heed
