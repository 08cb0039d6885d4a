// BERT's normaliser: clean, put spaces around ideographs, strip accents, lower case.
#include "tokenizer/normalisation.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "tokenizer/character_class.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

bool is_white_space_at(std::string_view text, std::size_t position) {
  const Utf8Character character = read_utf8(text, position);
  return character.valid && character_class(character.code_point) == CharacterClass::space;
}

class StripStep : public NormaliserStep {
 public:
  explicit StripStep(StrippedEnds ends) : ends_(ends) {}

  void apply(std::string_view text, ChangedText& result) const override {
    std::size_t begin = 0;
    std::size_t end = text.size();
    if (ends_.left) {
      while (begin < end && is_white_space_at(text, begin)) begin += read_utf8(text, begin).length;
    }
    if (ends_.right) {
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
    return fmt::format(R"({{"type": "Strip", "strip_left": {}, "strip_right": {}}})", ends_.left,
                       ends_.right);
  }

 private:
  StrippedEnds ends_;
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

utf8proc_category_t category_of(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

// Tabs and line ends are white space here.
bool is_control_character(char32_t code_point) {
  if (code_point == '\t' || code_point == '\n' || code_point == '\r') return false;
  switch (category_of(code_point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return true;
    default: return false;
  }
}

void append_clean(char32_t code_point, std::string& text) {
  constexpr char32_t replacement_character = 0xFFFD;
  if (code_point == replacement_character || is_control_character(code_point)) return;
  const bool is_space = character_class(code_point) == CharacterClass::space;
  append_utf8(text, is_space ? U' ' : code_point);
}

bool is_ideograph(char32_t code_point) {
  const auto within = [&](char32_t first, char32_t last) {
    return code_point >= first && code_point <= last;
  };
  // As published, with the gap from U+2B820 on.
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) ||
         within(0x2A700, 0x2B73F) || within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) ||
         within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

void append_apart(char32_t code_point, std::string& text) {
  const bool apart = is_ideograph(code_point);
  if (apart) text.push_back(' ');
  append_utf8(text, code_point);
  if (apart) text.push_back(' ');
}

// Form D of `points`, decomposed already, without nonspacing marks.
void append_without_accents(std::vector<utf8proc_int32_t>& points, std::string& text) {
  sort_marks(points);
  for (const utf8proc_int32_t point : points) {
    if (utf8proc_category(point) == UTF8PROC_CATEGORY_MN) continue;
    append_utf8(text, static_cast<char32_t>(point));
  }
}

// A character and the marks after it, whose order may change, are one part.
void strip_accents(std::string_view text, ChangedText& result) {
  std::size_t kept = 0;  // everything before is in `result`
  std::vector<utf8proc_int32_t> points;
  for (std::size_t begin = 0; begin < text.size();) {
    const Utf8Character first = read_utf8(text, begin);
    std::size_t end = begin + first.length;
    if (first.code_point < 0x80 && end < text.size() &&
        static_cast<unsigned char>(text[end]) < 0x80) {
      begin = end;  // the common case
      continue;
    }
    points.clear();
    if (first.valid) append_decomposition(first.code_point, points);
    while (first.valid && end < text.size()) {
      const Utf8Character next = read_utf8(text, end);
      if (!next.valid) break;
      const std::size_t count = points.size();
      append_decomposition(next.code_point, points);
      if (combining_class(points[count]) == 0) {
        points.resize(count);
        break;
      }
      end += next.length;
    }
    if (first.valid) {
      std::string bare;
      append_without_accents(points, bare);
      if (bare != text.substr(begin, end - begin)) {
        result.keep(text.substr(kept, begin - kept));
        result.replace(end - begin, bare);
        kept = end;
      }
    }
    begin = end;
  }
  result.keep(text.substr(kept));
}

class BertStep : public NormaliserStep {
 public:
  explicit BertStep(BertNormalisation options) : options_(options) {}

  void apply(std::string_view text, ChangedText& result) const override {
    ChangedText changed;
    changed.keep(text);
    const auto then = [&](auto&& change) {
      ChangedText next;
      change(std::string_view(changed.text()), next);
      changed = changed.then(next);
    };
    const auto map = [&](auto append) {
      then([&](std::string_view before, ChangedText& next) {
        map_characters(before, next, append);
      });
    };
    if (options_.clean_text) map(append_clean);
    if (options_.handle_chinese_chars) map(append_apart);
    if (options_.strip_accents) then(strip_accents);
    if (options_.lowercase) map(append_lowercase);
    result = std::move(changed);
  }

  std::string json() const override {
    return fmt::format(
        R"({{"type": "BertNormalizer", "clean_text": {}, "handle_chinese_chars": {}, )"
        R"("strip_accents": {}, "lowercase": {}}})",
        options_.clean_text, options_.handle_chinese_chars, options_.strip_accents,
        options_.lowercase);
  }

 private:
  BertNormalisation options_;
};

}  // namespace

ChangedText NormaliserSteps::apply(std::string_view text) const {
  ChangedText result;
  if (steps_.empty()) {
    result.keep(text);
    return result;
  }
  const std::size_t most = max_normalised_growth * text.size();
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

std::unique_ptr<const NormaliserStep> make_strip_step(StrippedEnds ends) {
  return std::make_unique<StripStep>(ends);
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

void append_lowercase(char32_t code_point, std::string& text) {
  constexpr char32_t dotted_capital_i = 0x130;  // the only one that becomes two characters
  if (code_point == dotted_capital_i) {
    text += "i\u0307";
  } else {
    append_utf8(text,
                static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
  }
}

std::unique_ptr<const NormaliserStep> make_bert_step(BertNormalisation options) {
  return std::make_unique<BertStep>(options);
}

}  // namespace heed
