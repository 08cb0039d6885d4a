// One word in many sentences: its vectors at every depth, by the sense that it has there.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/sense_sentences.h"
#include "engine/views/token_json.h"
#include "microscope/explain/senses.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "server/explorer/state.h"

namespace heed::server {

// The measurements of a word's sentences, which do not depend on the reader's own sentence.
struct MeasuredWord {
  struct Depth {
    Point point;
    SenseVectors vectors;
    SenseSeparation separation;
    PlaneTurn turn;  // of the plane, towards that of the next depth
  };
  const WordSenses* sentences = nullptr;
  std::vector<Depth> depths;
  double p = 1;  // of the depth where the senses are most clearly apart

  bool tells_apart() const { return p <= 0.05; }
  // Where no depth is beyond chance, none is called apart.
  bool apart(const Depth& depth) const { return tells_apart() && depth.separation.apart(); }
};

namespace {

constexpr std::size_t max_kept_words = 16;
constexpr std::size_t max_own_bytes = 4000;

// The vectors of the last token of a word in a text, (depths, C).
struct WordRows {
  std::int64_t position = 0;
  Tensor<float> rows;
};

WordRows word_rows(const LoadedModel& model, const std::vector<Point>& points,
                   const std::string& text, const std::string& word) {
  const std::vector<std::int32_t> tokens = model.encode(text);
  const std::int64_t position = find_word(text_words(model, tokens), word).last();
  const Capture capture = trace(model.transformer, tokens, points);
  return {position, vectors_at(capture, position)};
}

std::shared_ptr<const MeasuredWord> measure(const LoadedModel& model, const WordSenses& word,
                                            StopFlag stop) {
  const std::vector<Point> points = depth_points(model.transformer.architecture());
  std::vector<WordRows> all;
  std::vector<std::size_t> senses;
  for (const SenseSentence& sentence : word.sentences) {
    require(!stop_requested(stop), ErrorCode::interrupted, "the client disconnected");
    all.push_back(word_rows(model, points, sentence.text, word.word));
    senses.push_back(sentence.sense);
  }
  auto measured = std::make_shared<MeasuredWord>();
  measured->sentences = &word;
  Tensor<float> vectors(Shape{std::ssize(all), model.transformer.specification().channels});
  for (std::int64_t depth = 0; depth < std::ssize(points); ++depth) {
    for (std::int64_t i = 0; i < std::ssize(all); ++i) {
      std::ranges::copy(all[static_cast<std::size_t>(i)].rows.view()[depth].span(),
                        vectors.view()[i].span().begin());
    }
    SenseVectors found(vectors, senses);
    SenseSeparation separation = found.separation();
    measured->depths.push_back({points[static_cast<std::size_t>(depth)], std::move(found),
                                std::move(separation), PlaneTurn{}});
  }
  // The deepest plane stays as it is, with most variance along its first axis.
  std::vector<PlanePoint> after = measured->depths.back().vectors.plane().points;
  for (auto depth = measured->depths.rbegin() + 1; depth != measured->depths.rend(); ++depth) {
    std::vector<PlanePoint> dots = depth->vectors.plane().points;
    depth->turn = turn_towards(dots, after);
    for (PlanePoint& dot : dots) dot = depth->turn(dot);
    after = std::move(dots);
  }
  std::vector<SenseSeparation> separations;
  for (const MeasuredWord::Depth& depth : measured->depths) {
    separations.push_back(depth.separation);
  }
  measured->p = most_apart_p(separations);
  return measured;
}

std::shared_ptr<const MeasuredWord> measured_word(State& state, const ChosenModel& chosen,
                                                  const Request& request) {
  const LoadedModel& model = *chosen.model;
  const std::string name = request.in_path("word");
  const std::string key = fmt::format("{}/{}", name, chosen.model->name);
  if (const auto kept = state.measured_words.find(key); kept != state.measured_words.end()) {
    return kept->second;
  }
  const WordSenses& word = senses_of(sense_library(model), name);
  if (state.measured_words.size() >= max_kept_words) state.measured_words.clear();
  return state.measured_words[key] = measure(model, word, request.stop);
}

// In lengths of the word's vectors, so that depths compare.
OrderedJson dot_json(const MeasuredWord::Depth& depth, const PlanePoint& point) {
  const PlanePoint turned = depth.turn(point);
  const double length = depth.vectors.mean_length();
  return {json_number(turned[0] / length), json_number(turned[1] / length)};
}

OrderedJson depth_json(const MeasuredWord& word, const MeasuredWord::Depth& depth) {
  const SenseSeparation& separation = depth.separation;
  OrderedJson dots = OrderedJson::array();
  for (const PlanePoint& point : depth.vectors.plane().points) {
    dots.push_back(dot_json(depth, point));
  }
  const auto& explained = depth.vectors.plane().explained;
  return {{"point", point_name(depth.point)},
          {"dots", std::move(dots)},
          {"explained", {json_number(explained[0]), json_number(explained[1])}},
          {"identical", separation.identical},
          {"same", json_number(separation.same)},
          {"other", json_number(separation.other)},
          {"shuffled_same", json_number(separation.shuffled_same)},
          {"shuffled_high", json_number(separation.shuffled_high)},
          {"p", json_number(separation.p)},
          {"apart", word.apart(depth)}};
}

OrderedJson own_json(const LoadedModel& model, const MeasuredWord& word, const std::string& text) {
  const WordRows own =
      word_rows(model, depth_points(model.transformer.architecture()), text, word.sentences->word);
  OrderedJson depths = OrderedJson::array();
  for (std::size_t i = 0; i < word.depths.size(); ++i) {
    const MeasuredWord::Depth& depth = word.depths[i];
    const auto row = own.rows.view()[static_cast<std::int64_t>(i)].span();
    const NearestSense nearest = depth.vectors.nearest(row);
    // Where the senses are not apart, being near to one of them means nothing.
    const bool is_named = word.apart(depth) && nearest.is_clear;
    depths.push_back({{"dot", dot_json(depth, depth.vectors.plane().point_of(row))},
                      {"sense", is_named ? OrderedJson(nearest.sense) : OrderedJson(nullptr)},
                      {"margin", json_number(nearest.margin)},
                      {"least", json_number(nearest.least)},
                      {"p", json_number(nearest.p)}});
  }
  return {{"text", text}, {"position", own.position}, {"depths", std::move(depths)}};
}

Reply words_of_library(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  chosen.model->require_tokenizer();
  const SenseLibrary& library = sense_library(*chosen.model);
  OrderedJson words = OrderedJson::array();
  for (const WordSenses& word : library.words) {
    words.push_back({{"word", word.word}, {"senses", word.senses}});
  }
  return json_reply({{"source", library.source}, {"words", std::move(words)}});
}

Reply one_word(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  model.require_tokenizer();
  const std::shared_ptr<const MeasuredWord> word = measured_word(state, chosen, request);
  OrderedJson sentences = OrderedJson::array();
  for (const SenseSentence& sentence : word->sentences->sentences) {
    sentences.push_back({{"text", sentence.text}, {"sense", sentence.sense}});
  }
  OrderedJson depths = OrderedJson::array();
  for (const MeasuredWord::Depth& depth : word->depths) depths.push_back(depth_json(*word, depth));
  OrderedJson own = nullptr;
  if (const auto text = request.parameter("text"); text && !text->empty()) {
    require(text->size() <= max_own_bytes, ErrorCode::invalid_argument,
            "the text has {} bytes, at most {} are read", text->size(), max_own_bytes);
    own = own_json(model, *word, *text);
  }
  return json_reply({{"word", word->sentences->word},
                     {"source", sense_library(model).source},
                     {"senses", word->sentences->senses},
                     {"sentences", std::move(sentences)},
                     {"shuffles", SenseVectors::shuffles},
                     {"tells_apart", word->tells_apart()},
                     {"depths", std::move(depths)},
                     {"own", std::move(own)}});
}

}  // namespace

void add_sense_routes(StateRoutes& routes) {
  routes.add("GET", "/api/senses", words_of_library);
  routes.add("GET", "/api/senses/{word}", one_word);
}

}  // namespace heed::server
