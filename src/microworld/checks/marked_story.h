// A tokenized microworld story, with its marks as token positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "microworld/story.h"
#include "model/editor.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// Positions [begin, end) in MarkedStory::tokens.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t last() const { return end - 1; }
};

struct MarkedStory {
  struct Sense {
    std::string word;
    std::string sense;
    TokenRange at;
    bool recalled = false;  // see microworld::SenseMark
  };
  struct Noun {
    TokenRange at;
    std::vector<TokenRange> adjectives;
  };
  struct Evidence {
    std::string subject;
    TokenRange word;
    std::vector<TokenRange> evidence;
    TokenRange answer;  // follows `word`
  };
  struct Mystery {
    TokenRange clue;
    TokenRange answer;
  };

  std::vector<std::int32_t> tokens;  // <|endoftext|>, the story, <|endoftext|>
  double log_probability = 0;        // of the story under the grammar
  std::vector<Sense> senses;
  std::vector<Noun> nouns;         // those with adjectives
  std::vector<Evidence> evidence;  // see microworld::EvidenceMark
  std::optional<Mystery> mystery;
};

// Throws Error{invalid_argument} for a tokenizer that has no <|endoftext|>.
MarkedStory mark_story(const microworld::Story& story, const Tokenizer& tokenizer);

// Cuts attention edges between ranges of positions, in every head of every layer.

// All edges from queries to keys, both ranges of positions.
struct EdgeBlock {
  TokenRange queries;
  TokenRange keys;
};

// The weights of cut edges are zero; those that are left in a row add up to 1 again. A row without
// a weight to cut stays as it is. Borrows `blocks`. For one sequence at a time.
class EdgeCutter final : public Editor {
 public:
  explicit EdgeCutter(const std::vector<EdgeBlock>& blocks) : blocks_(blocks) {}

  bool edits(const Point& point) const override { return point.kind == PointKind::pattern; }
  void edit(const EditedPoint&, View<float> values) override;

 private:
  const std::vector<EdgeBlock>& blocks_;
};

}  // namespace heed
