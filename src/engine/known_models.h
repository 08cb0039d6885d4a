// The decoders that can be loaded by name: those that heed carries and those that were pulled; and
// published ones that the explorer's page offers to download.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// A repository of the hub that may be asked for from a page: no client names another.
struct PublishedModel {
  std::string_view name;      // of the repository, as for pull_model()
  std::string_view revision;  // as for pull_model()
  std::string_view title;
  std::string_view about;   // what it has read
  std::int64_t parameters;  // as its authors count them
  std::int64_t bytes;       // of its weights
};
std::span<const PublishedModel> published_models();
// Null where it is none of them.
const PublishedModel* find_published_model(std::string_view name);

enum class ModelOrigin { embedded, pulled, published };

struct KnownModel {
  std::string name;  // what load_model() takes
  std::string title;
  std::string about;  // what it has read, in one line; empty: nothing says so
  ModelOrigin origin = ModelOrigin::embedded;
  std::int64_t parameters = -1;  // −1: unknown
  std::int64_t bytes = 0;        // of its weights, as stored
  std::int64_t partial = 0;      // bytes of them that a download has left to go on from
  bool is_here = true;           // otherwise it may be downloaded
  std::string damage{};          // why it cannot be loaded; empty: it can
};

// All of them, in the order of ModelOrigin: a published one that was pulled counts as pulled.
// Encoder-decoders are left out. Reads small files alone.
std::vector<KnownModel> known_models();

}  // namespace heed
