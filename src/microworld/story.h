// A story and the truth about it. Offsets are bytes into the story's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::microworld {

enum class StoryKind { creature, market, outing, letter, tale, finding, mystery, album };

inline constexpr std::size_t story_kind_count = 8;

// Stable lower-case name, such as "mystery".
std::string_view story_kind_name(StoryKind kind);

// All of them, in order.
std::span<const std::string_view> story_kind_names();

// The bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
  friend bool operator==(const Span&, const Span&) = default;
};

// A word of several senses, and the one it has here. What tells the senses apart always stands
// before the word.
struct SenseMark {
  std::string word;
  std::string sense;
  Span span;
  bool recalled = false;  // the words directly after it do not depend on the sense
};

// A name that several bearers share, and the one meant here.
struct NameMark {
  std::string name;
  std::string referent;
  Span span;
};

// A noun and the adjectives directly before it, in the order of the text.
struct AdjectiveMark {
  Span noun;
  std::vector<Span> adjectives;
};

// Who did it. `clue_name` is the only place that says so before `answer`, which is the story's last
// word.
struct Culprit {
  std::string name;                   // the role, such as "gardener"
  std::vector<std::string> suspects;  // three, in the order of their introduction
  Span clue;                          // the whole sentence
  Span clue_name;                     // the role within it
  Span answer;                        // the role after "therefore the murderer was the"
};

// What follows a word, and the words before it that decide this: with other evidence, something
// else would follow. `subject` names the kind of decision, such as "mole/animal" or "manner";
// stories have many variants of each.
struct EvidenceMark {
  std::string subject;
  Span word;
  std::vector<Span> evidence;  // in the order of the text, all before the end of `word`
  Span answer;                 // starts at the end of `word`
};

struct Story {
  std::int64_t index = -1;  // -1 when the story was read from a text
  StoryKind kind = StoryKind::creature;
  std::string text;
  double log_probability = 0.0;  // natural logarithm, under the grammar
  std::vector<SenseMark> senses;
  std::vector<NameMark> names;
  std::vector<AdjectiveMark> adjectives;
  std::vector<EvidenceMark> evidence;
  std::optional<Culprit> culprit;
};

// The story and its truth as one line of JSON, without the newline.
std::string to_json_line(const Story& story);

}  // namespace heed::microworld
