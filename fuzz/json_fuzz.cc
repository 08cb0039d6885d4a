// parse_json on any bytes: a document or Error{corrupt_data}, never anything else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "allowed_errors.h"
#include "base/error.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data}, [&] {
    const heed::Json parsed = heed::parse_json(text, "input");
    // What was read is written and read again as the same.
    if (heed::parse_json(parsed.dump(), "dump") != parsed) std::abort();
  });
  return 0;
}
