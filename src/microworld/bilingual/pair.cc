#include "microworld/bilingual/pair.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace heed::microworld::bilingual {
namespace {

bool share(const std::vector<Concept>& first, const std::vector<Concept>& other) {
  return std::any_of(first.begin(), first.end(), [&](Concept named) {
    return std::find(other.begin(), other.end(), named) != other.end();
  });
}

OrderedJson words_json(const WrittenSentence& sentence) {
  OrderedJson words = OrderedJson::array();
  for (const WrittenWord& word : sentence.words) {
    words.push_back({{"text", word.word.text}, {"begin", word.span.begin}, {"end", word.span.end}});
  }
  return words;
}

OrderedJson links_json(const std::vector<Link>& links) {
  OrderedJson list = OrderedJson::array();
  for (const Link& link : links) list.push_back({link.english, link.german});
  return list;
}

}  // namespace

void align(Pair& pair) {
  pair.sure.clear();
  pair.possible.clear();
  for (std::size_t i = 0; i < pair.english.words.size(); ++i) {
    const Word& english = pair.english.words[i].word;
    for (std::size_t j = 0; j < pair.german.words.size(); ++j) {
      const Word& german = pair.german.words[j].word;
      if (share(english.sure, german.sure)) {
        pair.sure.push_back({i, j});
      } else if (share(english.sure, german.possible) || share(english.possible, german.sure) ||
                 share(english.possible, german.possible)) {
        pair.possible.push_back({i, j});
      }
    }
  }
}

std::string pharaoh_line(const std::vector<Link>& links) {
  std::string line;
  for (const Link& link : links) {
    line += fmt::format("{}{}-{}", line.empty() ? "" : " ", link.english, link.german);
  }
  return line;
}

std::string to_json_line(const Pair& pair) {
  OrderedJson line;
  line["index"] = pair.index;
  line["english"] = pair.english.text;
  line["german"] = pair.german.text;
  line["english_words"] = words_json(pair.english);
  line["german_words"] = words_json(pair.german);
  line["sure"] = links_json(pair.sure);
  line["possible"] = links_json(pair.possible);
  line["english_log_probability"] = pair.english_log_probability;
  line["german_log_probability"] = pair.german_log_probability;
  return line.dump();
}

}  // namespace heed::microworld::bilingual
