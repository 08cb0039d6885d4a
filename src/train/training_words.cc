#include "train/training_words.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace heed {
namespace {

constexpr std::size_t max_counted = std::size_t{128} << 20;  // bytes
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

std::optional<WordSet> united(const std::optional<WordSet>& before,
                              const std::optional<WordSet>& own) {
  if (!before || !own) return std::nullopt;
  std::vector<std::string> words = before->words();
  for (const std::string& word : own->words()) {
    if (words.size() == 2 * max_read_words) break;
    words.push_back(word);
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  words.resize(std::min(words.size(), max_read_words));
  return WordSet(std::move(words));
}

// Within the bound of a title, at the end of a character.
std::string cut_title(std::string title) {
  if (title.size() <= max_title_bytes) return title;
  std::size_t end = max_title_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(title[end]) & 0xC0U) == 0x80U) --end;
  return title.substr(0, end) + "…";
}

}  // namespace

TrainingWords::TrainingWords(const TextViews& texts) {
  std::size_t all = 0;
  for (const std::string_view text : texts) all += text.size();
  if (all <= max_counted) {
    for (const std::string_view text : texts) counter_.add(text);
    return;
  }
  const std::size_t pieces = all / piece_bytes, wanted = max_counted / piece_bytes;
  std::size_t piece = 0, counted = 0;
  for (const std::string_view text : texts) {
    for (std::size_t at = 0; at < text.size(); at += piece_bytes, ++piece) {
      if (piece * wanted / pieces == (piece + 1) * wanted / pieces) continue;
      const std::string_view part = text.substr(at, piece_bytes);
      counter_.add(part);
      counted += part.size();
    }
  }
  share_ = static_cast<double>(counted) / static_cast<double>(all);
}

WordSet TrainingWords::read_words(double passes) const {
  return counter_.read_words(passes / share_);
}

std::string title_of_files(const std::vector<std::filesystem::path>& files) {
  const auto name = [&](std::size_t i) {
    const std::string shown = escape_controls(files[i].filename().string());
    return shown.empty() ? std::string("a text") : shown;
  };
  if (files.empty()) return "a text";
  if (files.size() == 1) return cut_title(name(0));
  if (files.size() == 2) return cut_title(name(0) + " and " + name(1));
  return cut_title(fmt::format("{} and {} other files", name(0), files.size() - 1));
}

std::optional<ReadingRecord> read_after(const std::filesystem::path& before, ReadingRecord own) {
  const std::optional<ReadingRecord> base = find_reading(before);
  if (!base) return std::nullopt;
  return ReadingRecord{.title = cut_title(base->title + "; then " + own.title),
                       .tokens = base->tokens + own.tokens,
                       .words = united(base->words, own.words),
                       .target_words = united(base->target_words, own.target_words)};
}

SourceFiles with_reading(SourceFiles files, const std::optional<ReadingRecord>& reading) {
  std::erase_if(files.companions,
                [](const CompanionFile& file) { return file.name == reading_file_name; });
  if (reading) files.companions.push_back({reading_file_name, reading_text(*reading)});
  return files;
}

}  // namespace heed
