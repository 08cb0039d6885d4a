// A hub's listing and names of models, from any bytes: what is accepted stays inside the cache.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "allowed_errors.h"
#include "base/error.h"
#include "download/http_client.h"
#include "download/hub.h"

namespace {

void read_listing(std::string_view text) {
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data}, [&] {
    const heed::HubRepository repository = heed::parse_hub_repository(text, "input");
    if (repository.commit.size() != 40) std::abort();
    for (const heed::HubFile& file : repository.files) {
      if (!heed::is_safe_repository_path(file.name)) std::abort();
      if (repository.find(file.name) != &file) std::abort();
    }
  });
}

void read_name(std::string_view text) {
  const auto name = heed::find_hub_name(text);
  if (!name) return;
  const std::string directory = name->directory_name();
  const bool is_plain = directory.find('/') == std::string::npos && directory != "." &&
                        directory != ".." && directory.size() < 256;
  if (!is_plain || !heed::is_safe_repository_path(directory)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_listing(text);
  read_name(text);
  heed::url_origin(std::string(text));
  return 0;
}
