#include "microworld/tables.h"

#include <algorithm>

#include "base/embedded_file.h"
#include "base/error.h"

HEED_EMBED(heed_story_tables, HEED_STORY_TABLES)
HEED_EMBED(heed_bilingual_tables, HEED_BILINGUAL_TABLES)

namespace heed::microworld {
namespace {

std::string_view text_between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    parts.push_back(part == "-" ? std::string_view() : part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

WordTables::WordTables(std::string_view text) {
  for (const std::string_view line : parts_of(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with('[')) {
      sections_.push_back({line.substr(1, line.size() - 2), {}});
    } else {
      sections_.back().second.emplace_back(line);
    }
  }
}

std::span<const TableRow> WordTables::rows(std::string_view section) const {
  const auto found =
      std::ranges::find(sections_, section, [](const auto& each) { return each.first; });
  check(found != sections_.end(), "every section that is asked for is in the table");
  return found->second;
}

const WordTables& story_tables() {
  static const WordTables tables(text_between(heed_story_tables_begin, heed_story_tables_end));
  return tables;
}

const WordTables& bilingual_tables() {
  static const WordTables tables(
      text_between(heed_bilingual_tables_begin, heed_bilingual_tables_end));
  return tables;
}

}  // namespace heed::microworld
