#include "engine/measured_examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "microscope/attention/text_words.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/intervene/edge_effects.h"

namespace heed {

namespace {

// A head attends to a word that has this many times an even share of its weights.
constexpr double min_multiple = 1.5;

// One example's text in the model.
class ExampleText {
 public:
  ExampleText(const LoadedModel& model, std::string text)
      : model_(&model),
        text_(std::move(text)),
        tokens_(model.encode(text_)),
        words_(words_of(model.token_bytes(tokens_))) {}

  const std::string& text() const { return text_; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<TextWord>& words() const { return words_; }

  // Of every token after the text.
  std::vector<double> probabilities(Editor* editor = nullptr) const {
    return next_token_probabilities(model_->transformer, tokens_, editor);
  }

  // The text with one word replaced by another of as many tokens.
  ExampleText with_word(const TextWord& word, std::string_view by) const {
    std::size_t begin = 0, index = 0;
    const std::vector<std::string> bytes = model_->token_bytes(tokens_);
    for (; static_cast<std::int64_t>(index) < word.begin; ++index) begin += bytes[index].size();
    const std::size_t at = text_.find(word.text, begin);
    std::string changed = text_;
    ExampleText other(*model_, changed.replace(at, word.text.size(), by));
    require(other.tokens().size() == tokens_.size(), ErrorCode::corrupt_data,
            "'{}' and '{}' are not as many tokens", word.text, by);
    return other;
  }

 private:
  const LoadedModel* model_;
  std::string text_;
  std::vector<std::int32_t> tokens_;
  std::vector<TextWord> words_;
};

class ClaimMeasurement {
 public:
  ClaimMeasurement(const LoadedModel& model, const ExampleText& text, const Json& example,
                   const Json& claim)
      : model_(model),
        config_(model.transformer.specification()),
        text_(text),
        id_(examples::text_in(example, "id")),
        query_(find_word(text.words(), examples::text_in(example, "word"))),
        attended_(find_word(text.words(), examples::text_in(claim, "attended"),
                            examples::occurrence_in(claim))),
        answer_text_(examples::text_in(claim, "answer")),
        claim_(claim),
        probabilities_(text.probabilities()) {
    const std::vector<std::int32_t> answer = model.encode_part(answer_text_);
    require(answer.size() == 1, ErrorCode::corrupt_data, "{}: the answer '{}' is {} tokens", id_,
            answer_text_, answer.size());
    answer_ = answer.front();
  }

  void add_to(OrderedJson& row, std::string& note) {
    const std::size_t trials = row["trials"].size();
    add_edge(row, note);
    add_replacement(row, note);
    require(row["trials"].size() > trials, ErrorCode::not_found,
            "{}: neither the edge to '{}' nor a word in its place takes half of the {} of '{}' "
            "away",
            id_, attended_.text, examples::percentage(before()), answer_text_);
    require(
        is_evidence_, ErrorCode::not_found,
        "{}: '{}' is no evidence for '{}': no edge to it takes half of that away, and the claim "
        "does not replace it",
        id_, attended_.text, answer_text_);
    if (claim_.value("depth", false)) add_depth(row, note);
  }

 private:
  double before() const { return probabilities_[static_cast<std::size_t>(answer_)]; }
  bool halves(const std::vector<double>& changed) const {
    return changed[static_cast<std::size_t>(answer_)] <= before() / 2;
  }

  double even_share() const {
    return static_cast<double>(attended_.end - attended_.begin) /
           static_cast<double>(query_.last() + 1);
  }

  // The head that attends to the word, and what its edge decides.
  void add_edge(OrderedJson& row, std::string& note) {
    const TokenRun key{attended_.begin, attended_.end};
    const auto shown = edge_to_show(model_.transformer, text_.tokens(),
                                    {.word = {query_.begin, query_.end},
                                     .keys = token_runs(text_.words()),
                                     .only = key,
                                     .min_weight = min_multiple * even_share()});
    require(shown.has_value(), ErrorCode::not_found,
            "{}: no head attends from '{}' to '{}' with {} times its even share of {}", id_,
            query_.text, attended_.text, min_multiple, examples::percentage(even_share()));
    const HeadName head = shown->effect.edge.head;
    if (row["weights"].empty()) {
      row["layer"] = head.layer;
      row["head"] = head.head;
    }
    const std::vector<double> without = without_edge(head);
    row["weights"].push_back({{"attended", attended_.text},
                              {"begin", key.begin},
                              {"end", key.end},
                              {"layer", head.layer},
                              {"head", head.head},
                              {"share", examples::rounded(shown->effect.weight)},
                              {"even", examples::rounded(even_share())},
                              {"decides", halves(without)}});
    note += fmt::format(" {} attends from {} to {} with {}.", head.text(),
                        examples::quoted(query_.text), examples::quoted(attended_.text),
                        examples::percentage(shown->effect.weight));
    is_evidence_ = halves(without);
    if (is_evidence_) return add_cut(head, without, row, note);
    note += " No single edge decides this.";
    EdgeRuns runs(model_.transformer, text_.tokens(), nullptr);
    const std::vector<double> without_word = runs.read_without_word(key);
    is_evidence_ = halves(without_word);
    if (!is_evidence_) return;
    note += fmt::format(" With the edges of all heads to {} cut, {}",
                        examples::quoted(attended_.text), told(without_word));
  }

  std::vector<double> without_edge(const HeadName& head) const {
    CutEdges cut{.rest = CutEdges::Rest::renormalised};
    for (std::int64_t s = attended_.begin; s < attended_.end; ++s) {
      cut.edges.push_back({query_.last(), s});
    }
    Interventions without(config_, {{.point = {PointKind::pattern, head.layer},
                                     .where = {.heads = {head.head}},
                                     .change = std::move(cut)}});
    return text_.probabilities(&without);
  }

  void add_cut(const HeadName& head, const std::vector<double>& after, OrderedJson& row,
               std::string& note) {
    OrderedJson edges = OrderedJson::array();
    for (std::int64_t s = attended_.begin; s < attended_.end; ++s) {
      edges.push_back({query_.last(), s});
    }
    add_trial(
        row,
        {{"label", fmt::format("Cut {} to {}", head.text(), examples::quoted(attended_.text))},
         {"layer", head.layer},
         {"head", head.head},
         {"edges", std::move(edges)}},
        after);
    note += " With this edge cut, " + told(after);
  }

  void add_replacement(OrderedJson& row, std::string& note) {
    const Json* replace = find_json_member(claim_, "replace");
    if (replace == nullptr) return;
    std::vector<std::string> words, others;
    OrderedJson tokens = OrderedJson::array();
    ExampleText changed = text_;
    for (const Json& each : replace->is_array() ? *replace : Json::array({*replace})) {
      const TextWord word = find_word(changed.words(), examples::text_in(each, "word"),
                                      examples::occurrence_in(each));
      const std::string by = examples::text_in(each, "by");
      is_evidence_ |= word.begin == attended_.begin;
      changed = changed.with_word(word, by);
      words.push_back(examples::quoted(word.text));
      others.push_back(examples::quoted(by));
      tokens.push_back({{"position", word.begin}, {"by", by}});
    }
    const std::vector<double> after = changed.probabilities();
    const std::string instead =
        fmt::format("{} for {}", examples::listed(others), examples::listed(words));
    require(halves(after), ErrorCode::not_found, "{}: with {}, '{}' only falls from {} to {}", id_,
            instead, answer_text_, examples::percentage(before()),
            examples::percentage(after[static_cast<std::size_t>(answer_)]));
    add_trial(row, {{"label", fmt::format("Write {}", instead)}, {"tokens", std::move(tokens)}},
              after);
    note += fmt::format(" With {}, {}", instead, told(after));
  }

  // The token that gains most, and so takes the place of the answer.
  std::size_t gaining(const std::vector<double>& after) const {
    std::size_t best = 0;
    for (std::size_t token = 0; token < after.size(); ++token) {
      if (after[token] - probabilities_[token] > after[best] - probabilities_[best]) best = token;
    }
    return best;
  }

  std::string told(const std::vector<double>& after) const {
    const std::size_t instead = gaining(after);
    return fmt::format("{} falls from {} to {}, and {} rises from {} to {}.",
                       examples::quoted(answer_text_), examples::percentage(before()),
                       examples::percentage(after[static_cast<std::size_t>(answer_)]),
                       examples::quoted(model_.token_bytes(static_cast<std::int32_t>(instead))),
                       examples::percentage(probabilities_[instead]),
                       examples::percentage(after[instead]));
  }

  void add_trial(OrderedJson& row, OrderedJson trial, const std::vector<double>& after) {
    const std::size_t instead = gaining(after);
    trial["token"] = answer_text_;
    trial["before"] = examples::rounded(before());
    trial["after"] = examples::rounded(after[static_cast<std::size_t>(answer_)]);
    trial["instead"] = {{"token", model_.token_bytes(static_cast<std::int32_t>(instead))},
                        {"before", examples::rounded(probabilities_[instead])},
                        {"after", examples::rounded(after[instead])}};
    if (std::ranges::find(row["trials"], trial) == row["trials"].end()) {
      row["trials"].push_back(std::move(trial));
    }
  }

  void add_depth(OrderedJson& row, std::string& note) {
    const LogitLens lens =
        look_through_layers(model_.transformer, text_.tokens(),
                            {.top = 1, .positions = {std::ssize(text_.tokens()) - 1}});
    const auto guess = [&](std::int64_t depth) { return lens.at(depth, 0).top.front().token; };
    require(guess(1) != answer_ && guess(config_.layers) == answer_, ErrorCode::not_found,
            "{}: the logit lens has '{}' after the first block and '{}' after the last; expected "
            "another token than '{}' and then that one",
            id_, model_.token_bytes(guess(1)), model_.token_bytes(guess(config_.layers)),
            answer_text_);
    std::int64_t since = config_.layers;
    while (guess(since - 1) == answer_) --since;
    row["depth"] = {{"first_guess", model_.token_bytes(guess(1))}, {"right_after_block", since}};
    note += fmt::format(
        " After the first block, the logit lens says {}; it is right after block {} of {}.",
        examples::quoted(model_.token_bytes(guess(1))), since, config_.layers);
  }

  const LoadedModel& model_;
  const StackSpecification& config_;
  const ExampleText& text_;
  std::string id_;
  const TextWord& query_;
  const TextWord& attended_;
  std::string answer_text_;
  std::int32_t answer_ = 0;
  const Json& claim_;
  std::vector<double> probabilities_;
  bool is_evidence_ = false;  // the attended word
};

}  // namespace

namespace {

// An example that says nothing of the model: the page picks the head.
OrderedJson sentence_alone(const Json& example, const std::string& note) {
  return {{"id", examples::text_in(example, "id")},
          {"title", examples::text_in(example, "title")},
          {"text", examples::text_in(example, "text")},
          {"note", note}};
}

}  // namespace

OrderedJson measure_examples(const LoadedModel& model, const Json& claims, StopFlag stop) {
  require(claims.is_array(), ErrorCode::corrupt_data, "the claims must be an array, not {}",
          shown_json(claims));
  OrderedJson list = OrderedJson::array();
  for (const Json& example : claims) {
    require(!stop_requested(stop), ErrorCode::interrupted, "interrupted");
    if (model.is_translator()) {
      list.push_back(examples::measured_translation(model, example, stop));
      continue;
    }
    const ExampleText text(model, examples::text_in(example, "text"));
    if (example.at("claims").empty()) {
      list.push_back(sentence_alone(example, examples::text_in(example, "about")));
      continue;
    }
    OrderedJson row{{"id", examples::text_in(example, "id")},
                    {"title", examples::text_in(example, "title")},
                    {"text", text.text()},
                    {"word", examples::text_in(example, "word")},
                    {"weights", OrderedJson::array()},
                    {"trials", OrderedJson::array()}};
    std::string note = examples::text_in(example, "about");
    for (const Json& claim : example.at("claims")) {
      ClaimMeasurement(model, text, example, claim).add_to(row, note);
    }
    row["note"] = note;
    list.push_back(std::move(row));
  }
  return list;
}

OrderedJson examples_for_page(const LoadedModel& model, const Json& measured) {
  OrderedJson list = OrderedJson::array();
  for (const Json& example : measured) {
    if (model.is_translator()) {
      list.push_back(examples::translation_for_page(example));
      continue;
    }
    if (!example.contains("layer")) {
      list.push_back(sentence_alone(example, examples::text_in(example, "note")));
      continue;
    }
    const std::vector<TextWord> words =
        words_of(model.token_bytes(model.encode(examples::text_in(example, "text"))));
    OrderedJson trials = OrderedJson::array();
    for (const Json& trial : example.at("trials")) {
      // As the page's links write changes: L4H1:6>5 for an edge that is cut, or @position=token.
      std::string changes;
      const Json edges = trial.value("edges", Json::array());
      for (const Json& edge : edges) {
        changes +=
            fmt::format("{}L{}H{}:{}>{}", changes.empty() ? "" : ";",
                        trial.at("layer").get<std::int64_t>(), trial.at("head").get<std::int64_t>(),
                        edge.at(0).get<std::int64_t>(), edge.at(1).get<std::int64_t>());
      }
      for (const Json& token : trial.value("tokens", Json::array())) {
        const auto position = token.at("position").get<std::int64_t>();
        std::string by = position > 0 ? " " : "";
        by += examples::text_in(token, "by");
        changes += fmt::format("{}@{}={}", changes.empty() ? "" : ";", position,
                               model.encode_part(by).front());
      }
      trials.push_back({{"label", trial.at("label")},
                        {"changes", changes},
                        {"cuts", edges.empty() ? "" : "renormalise"},
                        {"token", trial.at("token")},
                        {"before", trial.at("before")},
                        {"after", trial.at("after")},
                        {"instead", trial.at("instead")}});
    }
    list.push_back({{"id", examples::text_in(example, "id")},
                    {"title", examples::text_in(example, "title")},
                    {"text", examples::text_in(example, "text")},
                    {"layer", example.at("layer")},
                    {"head", example.at("head")},
                    {"position", find_word(words, examples::text_in(example, "word")).last()},
                    {"evidence",
                     {{"begin", example.at("weights").at(0).at("begin")},
                      {"end", example.at("weights").at(0).at("end")}}},
                    {"trials", std::move(trials)},
                    {"note", examples::text_in(example, "note")}});
  }
  return list;
}

}  // namespace heed

namespace heed::examples {

std::string text_in(const Json& object, const char* key) {
  const Json* found = find_json_member(object, key);
  require(found != nullptr, ErrorCode::corrupt_data, "an example has no '{}'", key);
  return json_string(*found, {fmt::format("'{}' of an example", key)});
}

std::int64_t occurrence_in(const Json& object, const char* key) {
  const Json* found = find_json_member(object, key);
  return found == nullptr ? 0 : json_integer(*found, {fmt::format("'{}'", key)}, 0);
}

std::string percentage(double share) {
  if (share < 0.001) return "less than 0.1 %";
  if (share > 0.999) return "over 99.9 %";
  const bool fine = share < 0.0995 || share > 0.9945;
  return fmt::format("{:.{}f} %", 100 * share, fine ? 1 : 0);
}

std::string quoted(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return fmt::format("“{}”", begin == text.npos ? text : text.substr(begin));
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 < items.size() ? ", " : " and ";
    text += items[i];
  }
  return text;
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

}  // namespace heed::examples
