// The views of attention in a pair of texts that `heed attend` shows for a translator.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "cli/attend.h"
#include "engine/pair_model.h"
#include "microscope/attention/pair_statistics.h"

namespace heed::cli {

// A pair of texts and its pass.
struct AttendedPair {
  const PairModel& model;
  bool is_translation;  // the target is the model's own
  RecordedPass pass;
  RecordedAttention attention{pass};
  std::vector<std::string> source_bytes;  // of each token
  std::vector<std::string> target_bytes;
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;

  AttendedPair(const PairModel& loaded, PairTexts texts,
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

// The `count` heads of the kinds that select most, with the largest weight of each.
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
