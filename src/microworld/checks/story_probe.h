// What a linear probe reads from one vector of a story, by depth, beside what a bag of words knows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "microscope/explain/linear_probe.h"
#include "model/transformer.h"

namespace heed {

enum class StoryProperty {
  culprit,        // who did it, from the last token before the answer of a mystery
  culprit_place,  // which of the three suspects, in the order of their introduction; from there too
  spoken,         // whether a word of a creature's story, drawn at random, is in quotation marks
};

// Stable lower-case names, such as "culprit".
std::string_view story_property_name(StoryProperty property);

struct StoryProbeOptions {
  std::int64_t training = 300;  // stories
  std::int64_t held_out = 100;
  std::uint64_t seed = 2;  // of the stories; use another seed than for training the model
  ProgressCallback progress{};
  StopFlag stop = nullptr;
};

using EncodeText = std::function<std::vector<std::int32_t>(std::string_view)>;

struct StoryProbe {
  struct Depth {
    Point point;
    LinearProbe probe;
    ProbeAccuracy found;
  };

  StoryProperty property{};
  std::int64_t training = 0;  // stories
  std::int64_t held_out = 0;
  std::vector<std::string> classes;
  std::vector<Depth> depths;  // of depth_points()
  // The control: a probe on the mean of token embeddings, of the whole text, or of the last four
  // tokens for `spoken`. What it reads needs no attention.
  ProbeAccuracy words;
  double most_frequent = 0;  // share of one class in the stories that were held out

  bool beats_words(const Depth& depth) const { return depth.found.beats(words); }

  // The class that each depth's probe reads from the last token of a text.
  std::vector<std::size_t> read(const Transformer& model,
                                std::span<const std::int32_t> tokens) const;
};

// [{"point", "accuracy", "shuffled", "beats_words"}]
OrderedJson depths_json(const StoryProbe& probe);

// Throws Error{invalid_argument} for fewer than one story in either part, Error{interrupted} when
// stopped.
StoryProbe probe_stories(const Transformer& model, const EncodeText& encode, StoryProperty property,
                         const StoryProbeOptions& options = {});

}  // namespace heed
