// What a hub says about a revision of a repository.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"

namespace heed {

struct HubFile {
  std::string name;  // a path in the repository, see is_safe_repository_path
  std::int64_t size = -1;
  ContentHash hash;

  // Whether the hub gave a size and a hash.
  bool is_verifiable() const { return size >= 0 && !hash.hex.empty(); }
};

struct HubRepository {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;

  const HubFile* find(std::string_view name) const;  // null when absent
};

// Reads the reply of ENDPOINT/api/models/REPOSITORY/revision/REVISION?blobs=true. Throws
// Error{corrupt_data} where a field is missing, of another type, or names a file outside the
// repository.
HubRepository parse_hub_repository(std::string_view text, const std::string& source);

}  // namespace heed
