// A tokenized microworld story, with its marks as token positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "microworld/story.h"
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

}  // namespace heed
