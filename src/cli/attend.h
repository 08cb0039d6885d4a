// The views of attention that `heed attend` and `heed tour` show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "cli/terminal/terminal.h"
#include "engine/loaded_model.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/attention/text_words.h"
#include "microscope/attention/word_walk.h"
#include "microscope/traces/capture.h"

namespace heed::cli {

std::vector<std::int64_t> all_layers(const StackSpecification& config);

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
  bool is_causal() const { return model.gpt.specification().is_causal(); }
  // What characterises a head of the layer, of its pattern.
  HeadHabitStrength habit(View<const float> pattern, std::int64_t layer) const;
};

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

// The first `count` heads and the largest weight of each on an earlier token.
void print_selective_heads(const AttendedText& text, const std::vector<RankedHead>& heads,
                           std::size_t count, const Screen& screen);

// The same of an encoder, whose heads attend in both directions.
void print_encoder_heads(const AttendedText& text, std::size_t count, const Screen& screen);
// The heads of an encoder that select most, the first `count` of them (0: all), and their patterns
// where all are listed.
OrderedJson encoder_heads_json(const AttendedText& text, std::size_t count);

// One head as a map with the tokens, or the words, on both sides.
enum class MapUnit { tokens, words };
void print_head_map(const AttendedText& text, const HeadChoice& choice, MapUnit unit,
                    const Screen& screen);

// One word's attention in one head, step by step.
void print_word_walk(const AttendedText& text, const TextWord& word, const WordWalk& walk,
                     const Screen& screen);

}  // namespace heed::cli
