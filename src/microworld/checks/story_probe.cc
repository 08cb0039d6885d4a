#include "microworld/checks/story_probe.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/random.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microworld/microworld.h"

namespace heed {
namespace {

constexpr std::int64_t tokens_that_tell_speech = 4;
constexpr std::uint64_t word_stream = 3;

struct ProbedText {
  std::string text;   // up to the word whose vector is read
  std::string label;  // of its class
};

std::string without_end_space(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

// A beginning of a story that ends with a word drawn at random, and whether that word is spoken.
ProbedText spoken_text(const microworld::Story& story, RandomStream& random) {
  std::vector<std::size_t> ends;  // of words: a letter, then none
  const std::string& text = story.text;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (is_letter(text[at - 1]) && !is_letter(text[at])) ends.push_back(at);
  }
  check(!ends.empty(), "a story has words");
  std::string begin = text.substr(0, ends[random.below(ends.size())]);
  const bool is_spoken = std::ranges::count(begin, '"') % 2 == 1;
  return {std::move(begin), is_spoken ? "spoken" : "told"};
}

ProbedText text_of(StoryProperty property, const microworld::Story& story, RandomStream& random) {
  if (property == StoryProperty::spoken) return spoken_text(story, random);
  const microworld::Culprit& culprit = *story.culprit;
  std::string text =
      without_end_space(std::string_view(story.text).substr(0, culprit.answer.begin));
  if (property == StoryProperty::culprit) return {std::move(text), culprit.name};
  const auto place = std::ranges::find(culprit.suspects, culprit.name);
  return {std::move(text), "suspect " + std::to_string(place - culprit.suspects.begin() + 1)};
}

// The last token's vectors at every depth, then the mean of token embeddings: (depths + 1, C).
Tensor<float> probed_vectors(const Transformer& model, std::span<const std::int32_t> tokens,
                             StoryProperty property) {
  const Capture capture = trace(model, tokens, depth_points(model.architecture()));
  const std::int64_t last = std::ssize(tokens) - 1;
  const Tensor<float> of_last = vectors_at(capture, last);
  const std::int64_t depths = of_last.view().extent(0), channels = of_last.view().extent(1);
  Tensor<float> rows(Shape{depths + 1, channels});
  std::ranges::copy(of_last.span(), rows.span().begin());
  const std::int64_t first = property == StoryProperty::spoken
                                 ? std::max<std::int64_t>(0, last + 1 - tokens_that_tell_speech)
                                 : 0;
  const View<const float> embeddings = capture.at({PointKind::embedding, -1}).view()[0];
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t t = first; t <= last; ++t) sum += embeddings(t, c);
    rows.view()(depths, c) = static_cast<float>(sum / static_cast<double>(last + 1 - first));
  }
  return rows;
}

}  // namespace

std::string_view story_property_name(StoryProperty property) {
  switch (property) {
    case StoryProperty::culprit: return "culprit";
    case StoryProperty::culprit_place: return "culprit_place";
    case StoryProperty::spoken: break;
  }
  return "spoken";
}

std::vector<std::size_t> StoryProbe::read(const Transformer& model,
                                          std::span<const std::int32_t> tokens) const {
  const Capture capture = trace(model, tokens, depth_points(model.architecture()));
  const Tensor<float> vectors = vectors_at(capture, std::ssize(tokens) - 1);
  std::vector<std::size_t> classes_read;
  for (std::size_t depth = 0; depth < depths.size(); ++depth) {
    const auto row = static_cast<std::int64_t>(depth);
    classes_read.push_back(depths[depth].probe.read(vectors.view()[row].span()));
  }
  return classes_read;
}

OrderedJson depths_json(const StoryProbe& probe) {
  OrderedJson depths = OrderedJson::array();
  for (const StoryProbe::Depth& depth : probe.depths) {
    depths.push_back({{"point", point_name(depth.point)},
                      {"accuracy", json_number(depth.found.accuracy)},
                      {"shuffled", json_number(depth.found.shuffled)},
                      {"beats_words", probe.beats_words(depth)}});
  }
  return depths;
}

StoryProbe probe_stories(const Transformer& model, const EncodeText& encode, StoryProperty property,
                         const StoryProbeOptions& options) {
  require(options.training >= 1 && options.held_out >= 1, ErrorCode::invalid_argument,
          "{} stories to train on and {} to measure: expected at least one of each",
          options.training, options.held_out);
  const std::vector<Point> points = depth_points(model.architecture());
  const std::int64_t stories = options.training + options.held_out;
  const bool is_mystery = property != StoryProperty::spoken;
  const microworld::Microworld world(options.seed, {is_mystery ? microworld::StoryKind::mystery
                                                               : microworld::StoryKind::creature});
  RandomStream random(options.seed, word_stream);
  StoryProbe made{.property = property,
                  .training = options.training,
                  .held_out = options.held_out,
                  .classes = {},
                  .depths = {},
                  .words = {}};
  std::vector<Tensor<float>> vectors;
  std::vector<std::size_t> labels;
  for (std::int64_t i = 0; i < stories; ++i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "the measurement was stopped");
    ProbedText probed = text_of(property, world.story(i), random);
    vectors.push_back(probed_vectors(model, encode(probed.text), property));
    const auto known = std::ranges::find(made.classes, probed.label);
    labels.push_back(static_cast<std::size_t>(known - made.classes.begin()));
    if (known == made.classes.end()) made.classes.push_back(std::move(probed.label));
    if (options.progress) options.progress({"reading stories", i + 1, stories});
  }
  const std::span<const std::size_t> all(labels);
  const auto of_training = all.first(static_cast<std::size_t>(options.training));
  const auto held_out = all.last(static_cast<std::size_t>(options.held_out));
  for (std::size_t one = 0; one < made.classes.size(); ++one) {
    made.most_frequent =
        std::max(made.most_frequent, static_cast<double>(std::ranges::count(held_out, one)) /
                                         static_cast<double>(options.held_out));
  }
  Tensor<float> rows(Shape{stories, vectors.front().view().extent(1)});
  for (std::int64_t depth = 0; depth <= std::ssize(points); ++depth) {
    for (std::int64_t i = 0; i < stories; ++i) {
      std::ranges::copy(std::as_const(vectors[static_cast<std::size_t>(i)]).view()[depth].span(),
                        rows.view()[i].span().begin());
    }
    const View<const float> read = rows;
    const View<const float> first = read.slice(0, 0, options.training);
    const ProbeAccuracy found =
        probe_accuracy(first, of_training, read.slice(0, options.training, stories), held_out,
                       made.classes.size());
    if (depth == std::ssize(points)) {
      made.words = found;
    } else {
      made.depths.push_back({points[static_cast<std::size_t>(depth)],
                             LinearProbe(first, of_training, made.classes.size()), found});
    }
  }
  return made;
}

}  // namespace heed
