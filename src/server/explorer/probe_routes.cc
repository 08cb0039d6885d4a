// What a linear probe reads from one vector, by depth: who did it, at the end of a mystery. The one
// place that says so comes long before; what a bag of words knows is the control.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "microscope/explain/linear_probe.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microworld/microworld.h"
#include "server/explorer/state.h"

namespace heed::server {

struct CulpritProbe {
  struct Depth {
    Point point;
    LinearProbe probe;
    ProbeAccuracy found;
  };
  std::vector<std::string> roles;
  std::vector<Depth> depths;
  ProbeAccuracy words;       // of the mean of the embeddings of all tokens
  double most_frequent = 0;  // share of one role in the stories that were held out
};

namespace {

constexpr std::uint64_t mystery_seed = 2;  // the starter was trained on other stories
constexpr std::int64_t training_stories = 300;
constexpr std::int64_t held_out_stories = 100;
constexpr std::size_t most_mystery_bytes = 4000;
constexpr std::string_view last_words = "the murderer was the";

// The last token's vectors at every depth, and the mean of all embeddings: (depths + 1, C).
Tensor<float> last_vectors(const LoadedModel& model, const std::vector<Point>& points,
                           std::string_view text) {
  const std::vector<std::int32_t> tokens = model.encode(text);
  const Capture capture = trace(model.gpt, tokens, points);
  const std::int64_t channels = model.gpt.specification().channels, last = std::ssize(tokens) - 1;
  const std::int64_t depths = std::ssize(points);
  Tensor<float> rows(Shape{depths + 1, channels});
  for (std::int64_t depth = 0; depth < depths; ++depth) {
    std::ranges::copy(capture.at(points[static_cast<std::size_t>(depth)]).view()[0][last].span(),
                      rows.view()[depth].span().begin());
  }
  const View<const float> embeddings = capture.at({PointKind::embedding, -1}).view()[0];
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t t = 0; t <= last; ++t) sum += embeddings(t, c);
    rows.view()(depths, c) = static_cast<float>(sum / static_cast<double>(last + 1));
  }
  return rows;
}

std::string_view without_end_space(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// One probe for each depth, on stories of which each has its murderer at the end.
std::shared_ptr<const CulpritProbe> train_probe(const LoadedModel& model, StopFlag stop) {
  const std::vector<Point> points = depth_points(model.gpt.architecture());
  const microworld::Microworld world(mystery_seed, {microworld::StoryKind::mystery});
  auto made = std::make_shared<CulpritProbe>();
  std::vector<Tensor<float>> vectors;
  std::vector<std::size_t> labels;
  for (std::int64_t i = 0; i < training_stories + held_out_stories; ++i) {
    require(!stop_requested(stop), ErrorCode::interrupted, "the client disconnected");
    const microworld::Story story = world.story(i);
    const std::string_view text(story.text);
    vectors.push_back(last_vectors(model, points,
                                   without_end_space(text.substr(0, story.culprit->answer.begin))));
    const auto known = std::ranges::find(made->roles, story.culprit->name);
    labels.push_back(static_cast<std::size_t>(known - made->roles.begin()));
    if (known == made->roles.end()) made->roles.push_back(story.culprit->name);
  }
  const std::span<const std::size_t> all(labels);
  const auto of_training = all.first(training_stories), held_out = all.last(held_out_stories);
  for (std::size_t role = 0; role < made->roles.size(); ++role) {
    made->most_frequent =
        std::max(made->most_frequent, static_cast<double>(std::ranges::count(held_out, role)) /
                                          static_cast<double>(held_out_stories));
  }
  Tensor<float> rows(Shape{training_stories + held_out_stories, vectors.front().view().extent(1)});
  for (std::int64_t depth = 0; depth <= std::ssize(points); ++depth) {
    for (std::int64_t i = 0; i < std::ssize(vectors); ++i) {
      std::ranges::copy(vectors[static_cast<std::size_t>(i)].view()[depth].span(),
                        rows.view()[i].span().begin());
    }
    const View<const float> read = rows;
    const View<const float> first = read.slice(0, 0, training_stories);
    const ProbeAccuracy found = probe_accuracy(
        first, of_training, read.slice(0, training_stories, training_stories + held_out_stories),
        held_out, made->roles.size());
    if (depth == std::ssize(points)) {
      made->words = found;
    } else {
      made->depths.push_back({points[static_cast<std::size_t>(depth)],
                              LinearProbe(first, of_training, made->roles.size()), found});
    }
  }
  return made;
}

// Two standard errors of the difference of two shares of the stories that were held out.
bool beats(const ProbeAccuracy& depth, const ProbeAccuracy& words) {
  const auto variance = [](double share) {
    return share * (1 - share) / static_cast<double>(held_out_stories);
  };
  return depth.accuracy - words.accuracy >
         2 * std::sqrt(variance(depth.accuracy) + variance(words.accuracy));
}

OrderedJson reading_json(const LoadedModel& model, const CulpritProbe& probe,
                         const std::string& text) {
  const std::string_view read = without_end_space(text);
  if (!read.ends_with(last_words)) return nullptr;
  const Tensor<float> rows = last_vectors(model, depth_points(model.gpt.architecture()), read);
  OrderedJson roles = OrderedJson::array();
  for (std::size_t depth = 0; depth < probe.depths.size(); ++depth) {
    roles.push_back(
        probe.depths[depth].probe.read(rows.view()[static_cast<std::int64_t>(depth)].span()));
  }
  return roles;
}

Reply culprit(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  require(model.is_starter(), ErrorCode::conflict,
          "the probe is trained on mysteries of the microworld, which only the starter has read");
  if (state.culprit_probe == nullptr) state.culprit_probe = train_probe(model, request.stop);
  const CulpritProbe& probe = *state.culprit_probe;
  OrderedJson depths = OrderedJson::array();
  for (const CulpritProbe::Depth& depth : probe.depths) {
    depths.push_back({{"point", point_name(depth.point)},
                      {"accuracy", json_number(depth.found.accuracy)},
                      {"shuffled", json_number(depth.found.shuffled)},
                      {"beats_words", beats(depth.found, probe.words)}});
  }
  OrderedJson read = nullptr;
  if (const auto text = request.parameter("text")) {
    require(text->size() <= most_mystery_bytes, ErrorCode::invalid_argument,
            "the text has {} bytes, at most {} are read", text->size(), most_mystery_bytes);
    read = reading_json(model, probe, *text);
  }
  return json_reply({{"roles", probe.roles},
                     {"training", training_stories},
                     {"held_out", held_out_stories},
                     {"most_frequent", json_number(probe.most_frequent)},
                     {"words", json_number(probe.words.accuracy)},
                     {"last_words", last_words},
                     {"depths", std::move(depths)},
                     {"reading", std::move(read)}});
}

}  // namespace

void add_probe_routes(StateRoutes& routes) { routes.add("GET", "/api/probes/culprit", culprit); }

}  // namespace heed::server
