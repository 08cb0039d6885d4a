// The normaliser of a tokenizer.json as a list of steps, each of which makes a text from a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/normalisation.h"

namespace heed {

class NormaliserStep {
 public:
  virtual ~NormaliserStep() = default;

  // Appends what becomes of `text`, the whole source of `result`.
  virtual void apply(std::string_view text, ChangedText& result) const = 0;

  // As tokenizer.json has it.
  virtual std::string json() const = 0;
};

class NormaliserSteps {
 public:
  NormaliserSteps() = default;
  explicit NormaliserSteps(std::vector<std::unique_ptr<const NormaliserStep>> steps)
      : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  ChangedText apply(std::string_view text) const;

  // A step alone, or a Sequence.
  std::string json() const;

 private:
  std::vector<std::unique_ptr<const NormaliserStep>> steps_;
};

// BERT's normaliser, in this order.
struct BertNormalisation {
  bool clean_text = true;            // drops control characters; white space becomes a space
  bool handle_chinese_chars = true;  // puts spaces around ideographs
  bool strip_accents = true;         // drops nonspacing marks, with everything in form D
  bool lowercase = true;
};

std::unique_ptr<const NormaliserStep> make_bert_step(BertNormalisation options);

// Drops white space at the beginning and the end.
std::unique_ptr<const NormaliserStep> make_strip_step(bool left, bool right);

// `from`, not empty, becomes `to`.
std::unique_ptr<const NormaliserStep> make_replace_step(std::string from, std::string to);

// Two or more spaces in a row become `to`: the regular expression " {2,}".
std::unique_ptr<const NormaliserStep> make_collapse_step(std::string to);

std::unique_ptr<const NormaliserStep> make_lowercase_step();

}  // namespace heed
