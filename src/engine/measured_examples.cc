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

namespace heed {

namespace {

constexpr std::size_t max_heads_off = 4;

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

  // Of `token` after the text.
  double probability(std::int32_t token, Probe* probe = nullptr) const {
    return answer_probability(model_->gpt, tokens_, token, nullptr, probe);
  }

  double probability_without(std::int32_t token, const std::vector<HeadName>& heads) const {
    return answer_probability_without(model_->gpt, tokens_, token, heads);
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
        config_(model.gpt.specification()),
        text_(text),
        id_(examples::text_in(example, "id")),
        query_(find_word(text.words(), examples::text_in(example, "word"))),
        answer_text_(examples::text_in(claim, "answer")),
        rows_(config_, query_.last()),
        claim_(claim) {
    if (find_json_member(claim, "attended") != nullptr) {
      attended_ = find_word(text.words(), examples::text_in(claim, "attended"),
                            examples::occurrence_in(claim));
    }
    const std::vector<std::int32_t> answer = model.encode_part(answer_text_);
    require(answer.size() == 1, ErrorCode::corrupt_data, "{}: the answer '{}' is {} tokens", id_,
            answer_text_, answer.size());
    answer_ = answer.front();
    before_ = text.probability(answer_, &rows_);
    heads_ = all_heads(config_);
    for (const HeadName& head : heads_) alone_.push_back(text.probability_without(answer_, {head}));
  }

  void add_to(OrderedJson& row, std::string& note) {
    const auto strongest = std::ranges::min_element(alone_) - alone_.begin();
    if (!row.contains("layer")) show(row, heads_[static_cast<std::size_t>(strongest)]);
    if (attended_) add_weight(row, note);
    const std::size_t trials = row["trials"].size();
    add_heads_off(row, note);
    add_replacement(row, note);
    require(row["trials"].size() > trials, ErrorCode::not_found,
            "{}: no head, and no {} of them, takes half of the {} of '{}' away", id_, max_heads_off,
            examples::percentage(before_), answer_text_);
    if (claim_.value("depth", false)) add_depth(row, note);
  }

 private:
  static void show(OrderedJson& row, const HeadName& head) {
    row["layer"] = head.layer;
    row["head"] = head.head;
  }

  double even_share() const {
    return static_cast<double>(attended_->end - attended_->begin) /
           static_cast<double>(query_.last() + 1);
  }

  double weight_on(const HeadName& head, const TextWord& word) const {
    return rows_.weight(head, word.begin, word.end);
  }

  bool attends(const HeadName& head) const {
    const double weight = weight_on(head, *attended_);
    if (weight < std::min(3 * even_share(), 0.6)) return false;
    const auto more = std::ranges::count_if(text_.words(), [&](const TextWord& word) {
      return word.begin <= query_.last() && weight_on(head, word) > weight;
    });
    return more <= 1;
  }

  void add_weight(OrderedJson& row, std::string& note) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      if (attends(heads_[i]) && (!best || alone_[i] < alone_[*best])) best = i;
    }
    require(best.has_value(), ErrorCode::not_found,
            "{}: no head attends from '{}' to '{}' with three times its even share of {}", id_,
            query_.text, attended_->text, examples::percentage(even_share()));
    const HeadName& head = heads_[*best];
    const double share = weight_on(head, *attended_);
    if (row["weights"].empty()) show(row, head);
    row["weights"].push_back({{"attended", attended_->text},
                              {"layer", head.layer},
                              {"head", head.head},
                              {"share", examples::rounded(share)},
                              {"even", examples::rounded(even_share())}});
    note += fmt::format(" {} attends from {} to {} with {}.", head.text(),
                        examples::quoted(query_.text), examples::quoted(attended_->text),
                        examples::percentage(share));
  }

  void add_heads_off(OrderedJson& row, std::string& note) {
    const auto [off, after] = heads_that_halve(
        config_, before_, max_heads_off,
        [&](const auto& heads) { return text_.probability_without(answer_, heads); });
    if (after > before_ / 2) return;
    std::vector<std::string> each;
    for (const HeadName& head : off) each.push_back(head.text());
    const std::string names = examples::listed(each);
    add_trial(row,
              {{"label", fmt::format("Switch {} off", names)},
               {"heads", fmt::format("{}", fmt::join(each, ";"))}},
              after);
    note +=
        fmt::format(" Without {}, {} falls from {} to {}.", names, examples::quoted(answer_text_),
                    examples::percentage(before_), examples::percentage(after));
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
      changed = changed.with_word(word, by);
      words.push_back(examples::quoted(word.text));
      others.push_back(examples::quoted(by));
      tokens.push_back({{"position", word.begin}, {"by", by}});
    }
    const double after = changed.probability(answer_);
    const std::string instead =
        fmt::format("{} for {}", examples::listed(others), examples::listed(words));
    require(after <= before_ / 2, ErrorCode::not_found,
            "{}: with {}, '{}' only falls from {} to {}", id_, instead, answer_text_,
            examples::percentage(before_), examples::percentage(after));
    add_trial(row, {{"label", fmt::format("Write {}", instead)}, {"tokens", std::move(tokens)}},
              after);
    note +=
        fmt::format(" With {}, {} falls from {} to {}.", instead, examples::quoted(answer_text_),
                    examples::percentage(before_), examples::percentage(after));
  }

  void add_trial(OrderedJson& row, OrderedJson trial, double after) {
    trial["token"] = answer_text_;
    trial["before"] = examples::rounded(before_);
    trial["after"] = examples::rounded(after);
    if (std::ranges::find(row["trials"], trial) == row["trials"].end()) {
      row["trials"].push_back(std::move(trial));
    }
  }

  void add_depth(OrderedJson& row, std::string& note) {
    const LogitLens lens = look_through_layers(
        model_.gpt, text_.tokens(), {.top = 1, .positions = {std::ssize(text_.tokens()) - 1}});
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
  std::optional<TextWord> attended_;
  std::string answer_text_;
  std::int32_t answer_ = 0;
  QueryRows rows_;
  const Json& claim_;
  double before_ = 0;
  std::vector<HeadName> heads_;
  std::vector<double> alone_;  // the answer's probability without each of the heads
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
    if (!example.contains("layer")) {
      list.push_back(sentence_alone(example, examples::text_in(example, "note")));
      continue;
    }
    const std::vector<TextWord> words =
        words_of(model.token_bytes(model.encode(examples::text_in(example, "text"))));
    OrderedJson trials = OrderedJson::array();
    for (const Json& trial : example.at("trials")) {
      // As the page's links write changes: heads that are switched off, or @position=token.
      std::string changes = trial.value("heads", "");
      for (const Json& token : trial.value("tokens", Json::array())) {
        const std::int64_t position = token.at("position");
        std::string by = position > 0 ? " " : "";
        by += examples::text_in(token, "by");
        changes += fmt::format("{}@{}={}", changes.empty() ? "" : ";", position,
                               model.encode_part(by).front());
      }
      trials.push_back({{"label", trial.at("label")},
                        {"changes", changes},
                        {"token", trial.at("token")},
                        {"before", trial.at("before")},
                        {"after", trial.at("after")}});
    }
    list.push_back({{"id", example.at("id")},
                    {"title", example.at("title")},
                    {"text", example.at("text")},
                    {"layer", example.at("layer")},
                    {"head", example.at("head")},
                    {"position", find_word(words, examples::text_in(example, "word")).last()},
                    {"trials", std::move(trials)},
                    {"note", example.at("note")}});
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
