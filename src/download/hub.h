// A hub of models: huggingface.co, or another server with its interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "download/download_file.h"

namespace heed {

// Names of models on a hub: "gpt2", "ORG/NAME", each with ":WEIGHTS", of its GGUF files, and
// "@REVISION" or without.
struct HubName {
  std::string repository;         // "gpt2" or "ORG/NAME"
  std::string revision = "main";  // a branch, a tag or a commit
  std::string weights{};          // "Q4_K_M", in capitals; empty: not of GGUF files

  // The name of a directory for it, unlike that of any other name: "gpt2", "ORG--NAME",
  // "ORG--NAME:Q4_K_M@REVISION".
  std::string directory_name() const;
};

// Nothing if the text cannot be a name on a hub: words of letters, digits and -._ within 96 bytes,
// no '-' or '.' at their ends, no "--" and no "..".
std::optional<HubName> find_hub_name(std::string_view text);

// Throws Error{invalid_argument} where find_hub_name returns nothing.
HubName parse_hub_name(std::string_view text);

// Whether a path in a repository stays in it: relative, without "..", empty parts, backslashes and
// control characters.
bool is_safe_repository_path(std::string_view path);

// What a hub says about a revision of a repository.
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

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token;  // for private and gated models; sent to the endpoint alone
  bool offline = false;
};

// From HF_ENDPOINT, HF_TOKEN and HEED_OFFLINE. Throws Error{invalid_argument} for an endpoint that
// is no address and for a token with other characters than visible ASCII.
HubSettings hub_settings_from_environment();

struct HubOptions {
  HubSettings settings;
  RetryOptions retry;
  ProgressCallback progress;
  StopFlag stop = nullptr;
};

class Hub {
 public:
  explicit Hub(HubOptions options);

  // The commit that the revision names now, and its files. Throws what Retries::wait throws,
  // Error{not_found} where there is no such model, Error{input_output} where it may not be read,
  // and Error{corrupt_data} for a reply that is none.
  HubRepository find(const HubName& name);

  // download_file() of a file of that commit, which is verifiable.
  void download(const HubName& name, const std::string& commit, const HubFile& file,
                const std::filesystem::path& path);

 private:
  std::string read_text(const std::string& url, const HubName& name);
  void refuse(const HttpReply& reply, const HubName& name) const;

  HubOptions options_;
  HttpClient client_;
};

}  // namespace heed
