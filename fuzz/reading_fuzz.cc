// parse_reading on any bytes: a record or Error{corrupt_data}; what was read is written and read
// again as the same. for_each_written_word on any bytes: words in order, within the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "allowed_errors.h"
#include "base/error.h"
#include "tokenizer/reading.h"
#include "tokenizer/written_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t end = 0;
  heed::for_each_written_word(text, [&](const heed::WrittenWord& word) {
    if (word.begin < end || word.end <= word.begin || word.end > text.size()) std::abort();
    end = word.end;
  });
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = heed::visible_character_end(text, at);
    if (next <= at || next > text.size()) std::abort();
    at = next;
  }
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data}, [&] {
    const heed::ReadingRecord record = heed::parse_reading(text, "input");
    const std::string written = heed::reading_text(record);
    if (heed::reading_text(heed::parse_reading(written, "written")) != written) std::abort();
  });
  return 0;
}
