// parse_json on any bytes: a document or Error{corrupt_data}, never anything else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const heed::Json parsed = heed::parse_json(text, "input");
    // What was read is written and read again as the same.
    if (heed::parse_json(parsed.dump(), "dump") != parsed) std::abort();
  } catch (const heed::Error& error) {
    if (error.code() != heed::ErrorCode::corrupt_data) std::abort();
  }
  return 0;
}
