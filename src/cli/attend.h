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
#include "microscope/attention/alignment.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/attention/text_words.h"
#include "microscope/attention/word_walk.h"
#include "microscope/traces/capture.h"

namespace heed::cli {

std::vector<std::int64_t> all_layers(const StackSpecification& config);

// Where heads attend, as the views describe them.
struct AttendedSite {
  AttentionScope scope;
  AttentionSpecification attention;
  std::span<const std::int32_t> tokens;  // of a text that attends to itself

  // What characterises a head of the layer, of its pattern.
  HeadHabitStrength habit(View<const float> pattern, std::int64_t layer) const;
};

// A text and the attention patterns of some layers: those of all layers of a long text take much
// memory.
struct AttendedText {
  const LoadedModel& model;
  std::vector<std::int32_t> tokens;
  std::vector<std::string> bytes;  // of each token
  Capture capture;
  std::vector<View<const float>> patterns;  // of each layer, (H, T, T); empty when not kept

  AttendedText(const LoadedModel& loaded, std::vector<std::int32_t> ids,
               const std::vector<std::int64_t>& kept_layers);

  int size() const { return static_cast<int>(tokens.size()); }
  std::string label(std::int64_t position, int width) const;
  std::string described(std::int64_t position) const;  // "␣c (of “chemistry”)"
  View<const float> pattern(std::int64_t layer, std::int64_t head) const {
    return patterns[layer][head];
  }
  bool is_causal() const { return model.transformer.specification().is_causal(); }
  AttendedSite site() const;
};

// Whether any token is a part of a character: then words, or characters, are what people can read.
bool splits_characters(std::span<const std::string> tokens);

struct HeadChoice {
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

// Every head of every layer as a thumbnail; needs no kept patterns.
void print_head_overview(const AttendedText& text, const Screen& screen);

// The first `count` heads and the largest weight of each on a token that says something.
void print_selective_heads(const AttendedText& text, const std::vector<RankedHead>& heads,
                           std::size_t count, const Screen& screen);

// The first `top` heads (0: all), and their patterns where all are listed.
OrderedJson heads_json(const std::vector<RankedHead>& heads, std::size_t top,
                       const std::function<OrderedJson(const RankedHead&)>& pattern_of);

// One head as a map with the tokens, or the words, on both sides.
enum class MapUnit { tokens, words };
void print_head_map(const AttendedText& text, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen);

// The words of a text as edges to show go to them: as the page has it, tokens, or words where
// tokens are parts of characters.
std::vector<TokenRun> shown_keys(const AttendedText& text);

// Why this head is shown, where nobody chose it: what its example says, or what cutting
// its edge changes.
// Empty where it was chosen.
std::string why_shown(const AttendedText& text, const HeadToShow& shown);

// One word's attention in one head, step by step.
void print_word_walk(const AttendedText& text, const TextWord& word, const WordWalk& walk,
                     const HeadToShow& shown, const Screen& screen);

// A pair of texts and its pass.
struct AttendedPair {
  const LoadedModel& model;
  bool is_translation;  // the target is the model's own
  RecordedPass pass;
  RecordedAttention attention{pass};
  std::vector<std::string> source_bytes;  // of each token
  std::vector<std::string> target_bytes;
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;

  AttendedPair(const LoadedModel& loaded, ModelTexts texts,
               std::shared_ptr<Interventions> editor = {});
  AttendedPair(const AttendedPair&) = delete;
  AttendedPair& operator=(const AttendedPair&) = delete;

  PairWords words() const { return {source_words, target_words}; }
  const std::vector<TextWord>& query_words(AttentionSite kind) const {
    return kind == encoder_site ? source_words : target_words;
  }
  const std::vector<TextWord>& key_words(AttentionSite kind) const {
    return kind == decoder_site ? target_words : source_words;
  }
  AttendedSite site(AttentionSite kind) const;
  // Names of what a pattern's rows and columns stand for.
  std::vector<std::string> query_names(AttentionSite kind, MapUnit unit) const;
  std::vector<std::string> key_names(AttentionSite kind, MapUnit unit) const;
};

struct PairHeadChoice {
  AttentionSite kind = cross_site;
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

// Both texts, at the top of every view.
void print_pair_texts(const AttendedPair& pair, const Screen& screen);

// Every head of the kinds as a thumbnail.
void print_pair_overview(AttendedPair& pair, const std::vector<AttentionSite>& kinds,
                         const Screen& screen);

// The heads of the kinds, those that select most first.
std::vector<RankedHead> ranked_heads(const AttendedPair& pair,
                                     const std::vector<AttentionSite>& kinds);
// The first `count` of them, with the largest weight of each.
void print_pair_heads(AttendedPair& pair, const std::vector<AttentionSite>& kinds,
                      std::size_t count, const Screen& screen);

// One head as a map: queries down, keys across.
void print_pair_map(AttendedPair& pair, const PairHeadChoice& choice, MapUnit unit,
                    const Screen& screen);

// One word of the target through its own past and into the source; or of the source, in the
// encoder. Without a head, the mean of the heads of the last layer.
struct PairWordChoice {
  PairSide side = PairSide::target;
  std::size_t word = 0;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
};
void print_pair_word(AttendedPair& pair, const PairWordChoice& choice, const Screen& screen);

// What interventions change in the predictions and in the translation.
void print_pair_changes(AttendedPair& pair, const std::string& summary, const Screen& screen);

// Weights of the rows that stand for a word, by words, for one head or the mean of all.
std::vector<float> word_weights(AttendedPair& pair, AttentionSite kind,
                                const PairWordChoice& choice, WordRow row);

// "The words of …" as a title says it: "Encoder", "Decoder", "Cross-attention".
std::string_view site_title(AttentionSite kind);

}  // namespace heed::cli
