#include "scoring/sentences.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/error.h"
#include "scoring/characters.h"

namespace heed::scoring {
namespace {

// The number of bytes before the white space that a line ends in.
std::size_t trimmed_size(std::string_view line, std::string_view source, std::size_t number) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size();) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(line.data() + i),
                         static_cast<utf8proc_ssize_t>(line.size() - i), &character);
    if (size <= 0) {
      fail(ErrorCode::corrupt_data, "{}: line {} is not UTF-8: its byte {} is 0x{:02x}", source,
           number, i + 1, static_cast<unsigned char>(line[i]));
    }
    i += static_cast<std::size_t>(size);
    if (!is_white_space(static_cast<char32_t>(character))) end = i;
  }
  return end;
}

}  // namespace

std::vector<std::string> read_sentences(std::string_view text, std::string_view source) {
  require(!text.empty(), ErrorCode::invalid_argument, "{} is empty; expected one sentence a line",
          source);
  std::vector<std::string> sentences;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    sentences.emplace_back(line.substr(0, trimmed_size(line, source, sentences.size() + 1)));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return sentences;
}

}  // namespace heed::scoring
