// The views of attention that `heed attend` and `heed tour` show: of a text, or of a source and a
// target.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "cli/terminal/terminal.h"
#include "engine/head_to_show.h"
#include "engine/loaded_model.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "microscope/attention/word_walk.h"

namespace heed::cli {

// Where heads attend, as the views describe them.
struct AttendedSite {
  AttentionScope scope;
  AttentionSpecification attention;
  std::span<const std::int32_t> tokens;  // of a text that attends to itself

  // What characterises a head of the layer, of its pattern.
  HeadHabitStrength habit(View<const float> pattern, std::int64_t layer) const;
};

// A text, or a source and a target, and the pass over them.
struct AttendedTexts {
  const LoadedModel& model;
  bool is_translation;  // the target is the model's own
  RecordedPass pass;
  mutable RecordedAttention attention{pass};
  std::vector<std::string> source_bytes;  // of each token
  std::vector<std::string> target_bytes;
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;

  AttendedTexts(const LoadedModel& loaded, ModelTexts texts,
                std::shared_ptr<Interventions> editor = {});
  AttendedTexts(const AttendedTexts&) = delete;
  AttendedTexts& operator=(const AttendedTexts&) = delete;

  bool is_pair() const { return pass.architecture().is_encoder_decoder(); }
  // Of one text.
  const std::vector<std::int32_t>& tokens() const { return pass.texts().target; }
  int size() const { return static_cast<int>(tokens().size()); }
  bool is_causal() const { return model.transformer.specification().is_causal(); }
  std::string label(std::int64_t position, int width) const;
  std::string described(std::int64_t position) const;  // "␣c (of “chemistry”)"

  AttendedSite site(AttentionSite site) const;
  Tensor<float> pattern(AttentionSite site, std::int64_t layer, std::int64_t head) const {
    return attention.pattern(site, layer, head);
  }
  PairSide query_side(AttentionSite site) const {
    return site == encoder_site ? PairSide::source : PairSide::target;
  }
  PairSide key_side(AttentionSite site) const {
    return site == cross_site ? PairSide::source : query_side(site);
  }
  const std::vector<TextWord>& words(PairSide side) const {
    return side == PairSide::source ? source_words : target_words;
  }
  const std::vector<std::string>& bytes(PairSide side) const {
    return side == PairSide::source ? source_bytes : target_bytes;
  }
  // A pattern by words, where a word's row is that of its last token.
  Tensor<float> by_words(AttentionSite site, View<const float> pattern,
                         WordRow row = WordRow::read) const {
    return heed::by_words(pattern, words(query_side(site)), words(key_side(site)), row);
  }
};

// Whether any token is a part of a character: then words, or characters, are what people can read.
bool splits_characters(std::span<const std::string> tokens);

struct HeadChoice {
  AttentionSite site = only_site;
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

// "first 92 %", "prev 75 %", "even 93 %", "5.2 back", "peak 71 %".
std::string habit_text(const HeadHabitStrength& habit);

// The terminal that a text is printed to.
struct Screen {
  Terminal terminal = standard_output();
  Ink ink{terminal};

  int width() const { return terminal.width; }
};

// Both texts of a pair, at the top of every view.
void print_texts(const AttendedTexts& texts, const Screen& screen);

// Every head of the sites as a thumbnail.
void print_head_overview(const AttendedTexts& texts, const std::vector<AttentionSite>& sites,
                         const Screen& screen);

// The heads of the sites, those that select most first.
std::vector<RankedHead> ranked_heads(const AttendedTexts& texts,
                                     const std::vector<AttentionSite>& sites);
// The first `count` heads and the largest weight of each on a token that says something.
void print_selective_heads(const AttendedTexts& texts, const std::vector<RankedHead>& heads,
                           std::size_t count, const Screen& screen);

// The first `top` heads (0: all), and their patterns where all are listed.
OrderedJson heads_json(const std::vector<RankedHead>& heads, std::size_t top,
                       const std::function<OrderedJson(const RankedHead&)>& pattern_of);

// One head as a map with the tokens, or the words, on both sides: queries down, keys across.
enum class MapUnit { tokens, words };
void print_head_map(const AttendedTexts& texts, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen);

// The words of a text as edges to show go to them: as the page has it, tokens, or words where
// tokens are parts of characters.
std::vector<TokenRun> shown_keys(const AttendedTexts& text);

// Why this head is shown, where nobody chose it: what its example says, or what cutting
// its edge changes.
// Empty where it was chosen.
std::string why_shown(const AttendedTexts& text, const HeadToShow& shown);

// One word's attention in one head, step by step.
void print_word_walk(const AttendedTexts& text, const TextWord& word, const WordWalk& walk,
                     const HeadToShow& shown, const Screen& screen);

// One word of the target through its own past and into the source; or of the source, in the
// encoder. Without a head, the mean of the heads of the last layer.
struct PairWordChoice {
  PairSide side = PairSide::target;
  std::size_t word = 0;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
};
void print_pair_word(const AttendedTexts& pair, const PairWordChoice& choice, const Screen& screen);

// What interventions change in the predictions and in the translation.
void print_pair_changes(const AttendedTexts& pair, const std::string& summary,
                        const Screen& screen);

// Weights of the rows that stand for a word, by words, for one head or the mean of all.
std::vector<float> word_weights(const AttendedTexts& pair, AttentionSite site,
                                const PairWordChoice& choice, WordRow row);

// "The words of …" as a title says it: "Encoder", "Decoder", "Cross-attention".
std::string_view site_title(AttentionSite kind);

}  // namespace heed::cli
