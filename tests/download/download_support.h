// A scripted hub, and the options to download from it without waiting.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "download/download_file.h"
#include "download/hub.h"
#include "support/hub_server.h"

namespace heed::testing {

class DownloadTest : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  DownloadTest() {
    for (std::size_t i = 0; i < content_.size(); ++i) {
      content_[i] = static_cast<char>((i * 2654435761U) >> 13);
    }
    server_.set_file(name_, content_);
  }

  HubOptions options(const std::string& token = "") {
    return {.settings = {.endpoint = server_.endpoint(), .token = token},
            .retry = {.pause = [this](Milliseconds delay) { pauses_.push_back(delay); }},
            .stop = &stop_};
  }

  // Downloads the file as the hub's listing announces it now.
  void download(HubOptions hub_options) {
    Hub hub(std::move(hub_options));
    const HubName name = parse_hub_name("org/small");
    const HubRepository repository = hub.find(name);
    hub.download(name, repository.commit, *repository.find(name_), directory_ / name_);
  }
  void download() { download(options()); }

  // The bytes that are on the disk; nothing where there is no file.
  std::optional<std::string> downloaded() const {
    const std::filesystem::path partial = partial_path(directory_ / name_);
    if (!std::filesystem::exists(partial)) return std::nullopt;
    return read_text_file(partial);
  }

  HubAnswer whole(const HubRequest& request) const {
    return HubServer::file_answer(request, content_);
  }

  const std::string name_ = "model.safetensors";
  std::string content_ = std::string(400'000, '\0');
  const EnvironmentVariable no_proxy_{"no_proxy", "127.0.0.1,localhost"};
  TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
  std::vector<Milliseconds> pauses_;
  HubServer server_;
};

}  // namespace heed::testing
