// A hub of models: huggingface.co, or another server with its interface.
#pragma once

#include <filesystem>
#include <string>

#include "download/download_file.h"
#include "download/hub_name.h"
#include "download/hub_repository.h"

namespace heed {

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
