// The server's answers without sockets: requests go to the router.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "server/explorer.h"
#include "server/service.h"

namespace heed::server::testing {

class TestExplorer {
 public:
  // `translator`, which may be null, is held beside the model.
  explicit TestExplorer(LoadedModel model, ExplorerOptions explorer = {},
                        HeldTranslator* translator = nullptr);

  const LoadedModel& model() const { return model_; }
  const Router& router() const { return router_; }

  // `target` is a path and a query.
  Reply send(const std::string& method, const std::string& target, const std::string& body = "");

  // The reply's JSON; fails the test where the status is another.
  Json get(const std::string& target, int status = 200);
  Json post(const std::string& target, const Json& body, int status = 200);

  // ?format=json as shape and values.
  struct Array {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  Array array(const std::string& target);

  // Makes a trace and returns its id.
  std::string trace(const std::string& text, const Json& interventions = Json::array());

  // Events of a stream: their names and data.
  struct Event {
    std::string name;
    Json data;
  };
  std::vector<Event> events(const std::string& target, const Json& body);

  // The message of a refusal.
  std::string refusal(const std::string& method, const std::string& target, int status,
                      const std::string& body = "");

 private:
  LoadedModel model_;
  ServeOptions options_;
  Compute compute_;
  Metrics metrics_;
  Scheduler scheduler_;
  Context context_;
  Router router_;
};

// The starter model, one explorer for the whole program.
TestExplorer& starter_explorer();

// Trains a tiny model for six steps, keeps it at 0, 3 and 6, and returns the run's directory,
// "small".
std::filesystem::path train_small_run(const heed::testing::TemporaryDirectory& directory);

// A writer that keeps what is written, and leaves after so many writes.
class KeepingWriter final : public StreamWriter {
 public:
  explicit KeepingWriter(std::int64_t patience = 1 << 30) : patience_(patience) {}
  bool write(std::string_view bytes) override {
    if (patience_-- <= 0) return false;
    text += bytes;
    ++writes;
    return true;
  }
  std::string text;
  std::int64_t writes = 0;

 private:
  std::int64_t patience_;
};

}  // namespace heed::server::testing
