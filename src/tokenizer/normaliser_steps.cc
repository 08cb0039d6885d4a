#include "tokenizer/normaliser_steps.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "tokenizer/character_class.h"
#include "tokenizer/character_mapping.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

bool is_white_space_at(std::string_view text, std::size_t position) {
  const Utf8Character character = read_utf8(text, position);
  return character.valid && character_class(character.code_point) == CharacterClass::space;
}

class StripStep : public NormaliserStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string_view text, ChangedText& result) const override {
    std::size_t begin = 0;
    std::size_t end = text.size();
    if (left_) {
      while (begin < end && is_white_space_at(text, begin)) begin += read_utf8(text, begin).length;
    }
    if (right_) {
      std::size_t last = begin;  // end of the last character that is no white space
      for (std::size_t i = begin; i < end;) {
        const std::size_t next = i + read_utf8(text, i).length;
        if (!is_white_space_at(text, i)) last = next;
        i = next;
      }
      end = last;
    }
    if (begin > 0) result.replace(begin, "");
    result.keep(text.substr(begin, end - begin));
    if (end < text.size()) result.replace(text.size() - end, "");
  }

  std::string json() const override {
    return fmt::format(R"({{"type": "Strip", "strip_left": {}, "strip_right": {}}})", left_,
                       right_);
  }

 private:
  bool left_;
  bool right_;
};

class ReplaceStep : public NormaliserStep {
 public:
  ReplaceStep(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void apply(std::string_view text, ChangedText& result) const override {
    std::size_t begin = 0;
    for (std::size_t found = text.find(from_); found != std::string_view::npos;
         found = text.find(from_, begin)) {
      result.keep(text.substr(begin, found - begin));
      result.replace(from_.size(), to_);
      begin = found + from_.size();
    }
    result.keep(text.substr(begin));
  }

  std::string json() const override {
    return fmt::format(R"({{"type": "Replace", "pattern": {{"String": {}}}, "content": {}}})",
                       json_quoted(from_), json_quoted(to_));
  }

 private:
  std::string from_;
  std::string to_;
};

class CollapseStep : public NormaliserStep {
 public:
  explicit CollapseStep(std::string to) : to_(std::move(to)) {}

  void apply(std::string_view text, ChangedText& result) const override {
    std::size_t begin = 0;
    for (std::size_t found = text.find("  "); found != std::string_view::npos;
         found = text.find("  ", begin)) {
      result.keep(text.substr(begin, found - begin));
      begin = std::min(text.find_first_not_of(' ', found), text.size());
      result.replace(begin - found, to_);
    }
    result.keep(text.substr(begin));
  }

  std::string json() const override {
    return fmt::format(R"({{"type": "Replace", "pattern": {{"Regex": " {{2,}}"}}, "content": {}}})",
                       json_quoted(to_));
  }

 private:
  std::string to_;
};

class LowercaseStep : public NormaliserStep {
 public:
  void apply(std::string_view text, ChangedText& result) const override {
    map_characters(text, result, append_lowercase);
  }
  std::string json() const override { return R"({"type": "Lowercase"})"; }
};

}  // namespace

ChangedText NormaliserSteps::apply(std::string_view text) const {
  ChangedText result;
  if (steps_.empty()) {
    result.keep(text);
    return result;
  }
  const std::size_t most = most_normalised_growth * text.size();
  result.limit_size(most);
  steps_.front()->apply(text, result);
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    ChangedText next;
    next.limit_size(most);
    steps_[i]->apply(result.text(), next);
    result = result.then(next);
  }
  return result;
}

std::string NormaliserSteps::json() const {
  if (steps_.empty()) return "null";
  if (steps_.size() == 1) return steps_.front()->json();
  std::string list;
  for (const auto& step : steps_) list += (list.empty() ? "" : ", ") + step->json();
  return fmt::format(R"({{"type": "Sequence", "normalizers": [{}]}})", list);
}

std::unique_ptr<const NormaliserStep> make_strip_step(bool left, bool right) {
  return std::make_unique<StripStep>(left, right);
}

std::unique_ptr<const NormaliserStep> make_replace_step(std::string from, std::string to) {
  return std::make_unique<ReplaceStep>(std::move(from), std::move(to));
}

std::unique_ptr<const NormaliserStep> make_collapse_step(std::string to) {
  return std::make_unique<CollapseStep>(std::move(to));
}

std::unique_ptr<const NormaliserStep> make_lowercase_step() {
  return std::make_unique<LowercaseStep>();
}

}  // namespace heed
