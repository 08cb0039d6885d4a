// Examples of translation.
#include "engine/measured_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/alignment.h"
#include "microscope/intervene/pair_effects.h"
#include "microworld/bilingual/bilingual.h"

namespace heed {
namespace {

constexpr double min_share = 0.5;

// A source and its translation in the model.
class TranslatedExample {
 public:
  TranslatedExample(const LoadedModel& model, const std::string& source, StopFlag stop)
      : pass(model.transformer, translated_pair(model, model.encode_source(source), stop).tokens),
        text(model.target_text(pass.texts().target)),
        source_words(text_units(model, pass.texts().source, PairSide::source)),
        target_words(text_units(model, pass.texts().target)) {}

  PairWords words() const { return {source_words, target_words}; }

  const RecordedPass pass;
  const std::string text;  // the translation
  const std::vector<TextWord> source_words;
  const std::vector<TextWord> target_words;
};

std::int64_t index_of(const std::vector<TextWord>& words, const TextWord& word) {
  return &word - words.data();
}

// The units of a text that are words of the grammar's sentence, in its order: special tokens are
// none.
std::vector<std::int64_t> grammar_words(const std::vector<TextWord>& units,
                                        const microworld::bilingual::WrittenSentence& sentence,
                                        const std::string& id) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < std::ssize(units); ++i) {
    const std::size_t next = indices.size();
    if (next == sentence.words.size()) break;
    const microworld::Span& span = sentence.words[next].span;
    if (units[static_cast<std::size_t>(i)].text == span.in(sentence.text)) indices.push_back(i);
  }
  require(indices.size() == sentence.words.size(), ErrorCode::corrupt_data,
          "{}: the tokenizer does not separate the words of '{}'", id, sentence.text);
  return indices;
}

class PairClaim {
 public:
  PairClaim(const LoadedModel& model, const Json& claim, StopFlag stop)
      : model_(model),
        claim_(claim),
        stop_(stop),
        id_(examples::text_in(claim, "id")),
        source_(examples::text_in(claim, "source")),
        example_(model, source_, stop),
        word_(find_word(example_.target_words, examples::text_in(claim, "word"),
                        examples::occurrence_in(claim))),
        attended_(find_word(example_.source_words, examples::text_in(claim, "attended"),
                            examples::occurrence_in(claim, "attended_occurrence"))) {}

  OrderedJson measured() {
    require_true_alignment();
    OrderedJson row{{"id", id_},
                    {"title", examples::text_in(claim_, "title")},
                    {"source", source_},
                    {"target", example_.text},
                    {"word", word_.text},
                    {"attended", attended_.text},
                    {"target_word", target_index()},
                    {"source_word", source_index()}};
    std::string says = examples::text_in(claim_, "about");
    add_head(row, says);
    const bool has_cut = add_cut(row, says);
    const bool has_replacement = add_replacement(row, says);
    require(has_cut || has_replacement, ErrorCode::not_found,
            "{}: without the edges to '{}', '{}' keeps {} of {}, and nothing is replaced", id_,
            attended_.text, word_.text, row["cut"].dump(), row["probability"].dump());
    row["says"] = says;
    return row;
  }

 private:
  std::int64_t target_index() const { return index_of(example_.target_words, word_); }
  std::int64_t source_index() const { return index_of(example_.source_words, attended_); }

  void require_true_alignment() const {
    const auto pair = microworld::bilingual::read_pair(source_, example_.text);
    require(pair.has_value(), ErrorCode::not_found,
            "{}: '{}' is no translation that the grammar makes of '{}'", id_, example_.text,
            source_);
    const auto source = grammar_words(example_.source_words, pair->english, id_);
    const auto target = grammar_words(example_.target_words, pair->german, id_);
    const bool is_sure = std::ranges::any_of(pair->sure, [&](const auto& link) {
      return source[link.english] == source_index() && target[link.german] == target_index();
    });
    require(is_sure, ErrorCode::not_found,
            "{}: '{}' and '{}' do not say the same, by the grammar: {}", id_, word_.text,
            attended_.text, pharaoh_line(pair->sure));
  }

  void add_head(OrderedJson& row, std::string& says) const {
    RecordedAttention attention(example_.pass);
    const Architecture& architecture = example_.pass.architecture();
    const std::int64_t heads = attention_of(architecture, cross_site).query_heads;
    CrossHead best;
    double share = -1;
    for (std::int64_t layer = 0; layer < architecture.decoder().layers; ++layer) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const Tensor<float> weights = cross_by_words(example_.pass, attention, {layer, head},
                                                     example_.words(), WordRow::written);
        const double own = weights.view()(target_index(), source_index());
        if (own > share) best = {layer, head};
        share = std::max(share, own);
      }
    }
    const double even = static_cast<double>(attended_.end - attended_.begin) /
                        static_cast<double>(example_.pass.sources());
    require(share > std::max(min_share, 3 * even), ErrorCode::not_found,
            "{}: while it writes '{}', no head attends mostly to '{}': at most {}", id_, word_.text,
            attended_.text, examples::percentage(share));
    row["layer"] = best.layer;
    row["head"] = *best.head;
    row["share"] = examples::rounded(share);
    row["even"] = examples::rounded(even);
    says += fmt::format(
        " While it writes {}, head L{}H{} of cross-attention gives {} {} of its "
        "weight.",
        examples::quoted(word_.text), best.layer, *best.head, examples::quoted(attended_.text),
        examples::percentage(share));
  }

  WordProbability without(const TextWord& word) const {
    std::vector<std::int64_t> tokens;
    for (std::int64_t s = word.begin; s < word.end; ++s) tokens.push_back(s);
    return written_without(example_.pass, word_, tokens);
  }

  bool add_cut(OrderedJson& row, std::string& says) const {
    const double before = std::exp(written_word(example_.pass, word_).log);
    const WordProbability without_attended = without(attended_);
    const double cut = std::exp(without_attended.log);
    double others = 1;  // with the edges to another word cut: the least
    for (const TextWord& word : example_.source_words) {
      require(!stop_requested(stop_), ErrorCode::interrupted, "interrupted");
      // The end of the source is no word.
      const bool is_end = word.end == example_.pass.sources();
      if (&word != &attended_ && !is_end) others = std::min(others, std::exp(without(word).log));
    }
    row["probability"] = examples::rounded(before);
    row["cut"] = examples::rounded(cut);
    row["others_cut"] = examples::rounded(others);
    if (cut > before / 2 || cut > others) return false;
    const std::string instead = model_.token_bytes(without_attended.first);
    row["instead"] = {{"token", instead},
                      {"probability", examples::rounded(without_attended.first_probability)}};
    says += fmt::format(
        " With its edges to {} cut, {} falls from {} to {}, and {} takes its place with {}; with "
        "those to any other word, to {} at least.",
        examples::quoted(attended_.text), examples::quoted(word_.text),
        examples::percentage(before), examples::percentage(cut), examples::quoted(instead),
        examples::percentage(without_attended.first_probability), examples::percentage(others));
    return true;
  }

  // The source with one word replaced.
  std::string changed_source(const TextWord& word, const std::string& by) const {
    const std::vector<std::string> bytes =
        model_.token_bytes(example_.pass.texts().source, PairSide::source);
    std::size_t begin = 0;
    for (std::int64_t t = 0; t < word.begin; ++t)
      begin += bytes[static_cast<std::size_t>(t)].size();
    std::string changed = source_;
    return changed.replace(changed.find(word.text, begin), word.text.size(), by);
  }

  bool add_replacement(OrderedJson& row, std::string& says) const {
    const Json* const replace = find_json_member(claim_, "replace");
    if (replace == nullptr) return false;
    const TextWord& word = find_word(example_.source_words, examples::text_in(*replace, "word"),
                                     examples::occurrence_in(*replace));
    const std::string by = examples::text_in(*replace, "by");
    const std::string becomes = examples::text_in(*replace, "becomes");
    const TranslatedExample other(model_, changed_source(word, by), stop_);
    const auto at = static_cast<std::size_t>(target_index());
    require(at < other.target_words.size() && other.target_words[at].text == becomes &&
                becomes != word_.text,
            ErrorCode::not_found,
            "{}: with '{}' for '{}' it translates '{}'; expected '{}' for '{}'", id_, by, word.text,
            other.text, becomes, word_.text);
    row["replaced"] = {{"word", word.text}, {"by", by}, {"target", other.text}};
    says += fmt::format(" With {} for {}, it writes {}: {}", examples::quoted(by),
                        examples::quoted(word.text), examples::quoted(becomes),
                        examples::quoted(other.text));
    return true;
  }

  const LoadedModel& model_;
  const Json& claim_;
  StopFlag stop_;
  std::string id_;
  std::string source_;
  TranslatedExample example_;
  const TextWord& word_;
  const TextWord& attended_;
};

}  // namespace

namespace examples {

OrderedJson measured_translation(const LoadedModel& translator, const Json& claim, StopFlag stop) {
  return PairClaim(translator, claim, stop).measured();
}

OrderedJson translation_for_page(const Json& measured) {
  OrderedJson row;
  for (const char* key :
       {"id", "title", "source", "target", "layer", "head", "target_word", "source_word", "says"}) {
    row[key] = measured.at(key);
  }
  return row;
}

}  // namespace examples
}  // namespace heed
