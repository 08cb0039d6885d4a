#include "server/explorer/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace heed::server {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{1} << 20;

// Nothing for a missing file.
std::optional<RegularFile> open_if_present(const std::filesystem::path& file) {
  try {
    return std::optional<RegularFile>(std::in_place, file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    return std::nullopt;
  }
}

// Calls visit(offset, line) for every complete line that begins in [begin, end). Lines longer than
// `max_length` are skipped. Returns the beginning of the first incomplete line.
template <class Visit>
std::int64_t for_each_line(const RegularFile& file, std::int64_t begin, std::int64_t end,
                           std::int64_t max_length, Visit&& visit) {
  std::string block;
  std::int64_t line_begin = begin;  // file offset of block's first byte
  bool is_too_long = false;         // the line at line_begin
  for (std::int64_t position = begin; position < end;) {
    const std::size_t kept = block.size();
    block.resize(kept + static_cast<std::size_t>(std::min(block_bytes, end - position)));
    const std::size_t count = file.read(position, std::span(block).subspan(kept));
    if (count == 0) break;
    block.resize(kept + count);
    position += static_cast<std::int64_t>(count);
    std::size_t line = 0;
    for (std::size_t newline = block.find('\n', kept); newline != std::string::npos;
         newline = block.find('\n', line)) {
      const std::string_view text = std::string_view(block).substr(line, newline - line);
      if (!is_too_long && std::ssize(text) <= max_length) {
        visit(line_begin + static_cast<std::int64_t>(line), text);
      }
      is_too_long = false;
      line = newline + 1;
    }
    line_begin += static_cast<std::int64_t>(line);
    block.erase(0, line);
    if (std::ssize(block) > max_length) {  // what follows of this line is passed over, too
      line_begin += std::ssize(block);
      block.clear();
      is_too_long = true;
    }
  }
  return line_begin;
}

// Where the first line begins at or after `position`, if the line around it is at most
// `max_length`.
std::int64_t next_line(const RegularFile& file, std::int64_t position, std::int64_t max_length) {
  if (position <= 0) return 0;
  std::string text(static_cast<std::size_t>(max_length), '\0');
  text.resize(file.read(position - 1, text));
  const std::size_t newline = text.find('\n');
  return position - 1 +
         (newline == std::string::npos ? std::ssize(text) : static_cast<std::int64_t>(newline) + 1);
}

// Parses a row, with the limits of all JSON documents; nothing if it is invalid.
std::optional<Json> parse_row(std::string_view line) {
  try {
    Json row = parse_json(line, "metrics");
    if (!row.is_object()) return std::nullopt;
    const auto step = row.find("step");
    if (step == row.end() || !step->is_number_integer()) return std::nullopt;
    return row;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t step_of(const Json& row) { return row["step"].get<std::int64_t>(); }

// The series of a line, without parsing it: {"step":12,"KEY":… belongs to series KEY. All lines
// with another beginning are one series.
struct Heading {
  std::optional<std::int64_t> step;
  std::string_view series;
};

Heading heading_of(std::string_view line) {
  constexpr std::string_view beginning = "{\"step\":";
  if (!line.starts_with(beginning)) return {};
  const char* const end = line.data() + line.size();
  std::int64_t step = 0;
  const auto [next, error] = std::from_chars(line.data() + beginning.size(), end, step);
  if (error != std::errc{}) return {};
  const std::string_view rest(next, static_cast<std::size_t>(end - next));
  if (!rest.starts_with(",\"")) return {.step = step};
  const std::size_t quote = rest.find('"', 2);
  if (quote == std::string_view::npos) return {.step = step};
  return {.step = step, .series = rest.substr(2, quote - 2)};
}

struct Line {
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

// Every stride-th line of a series, and the last.
class Series {
 public:
  void add(const Line& line, std::int64_t most) {
    if (seen_++ % stride_ == 0) {
      kept_.push_back(line);
      bytes_ += line.length;
      if (std::ssize(kept_) > most) halve();
    }
    last_ = line;
  }

  // Keeps every other line; the first stays.
  void halve() {
    std::size_t count = 0;
    bytes_ = 0;
    for (std::size_t i = 0; i < kept_.size(); i += 2) {
      bytes_ += kept_[i].length;
      kept_[count++] = kept_[i];
    }
    kept_.resize(count);
    stride_ *= 2;
  }

  void append_to(std::vector<Line>& lines) const {
    lines.insert(lines.end(), kept_.begin(), kept_.end());
    if (kept_.back().offset != last_.offset) lines.push_back(last_);
  }
  std::int64_t rows() const { return std::ssize(kept_); }
  std::int64_t bytes() const { return bytes_; }
  bool is_thinned() const { return stride_ > 1; }

 private:
  std::vector<Line> kept_;
  Line last_;
  std::int64_t seen_ = 0;
  std::int64_t stride_ = 1;
  std::int64_t bytes_ = 0;  // of kept_
};

using SeriesByName = std::map<std::string, Series, std::less<>>;

Series& series_named(SeriesByName& all, std::string_view name, std::size_t most) {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  return all[all.size() + 1 < most ? std::string(name) : std::string()];
}

// Thins the longest series until all of them together are small enough.
void thin_to(SeriesByName& all, std::int64_t max_bytes) {
  const auto bytes = [](const auto& entry) { return entry.second.bytes(); };
  for (;;) {
    std::int64_t total = 0;
    for (const auto& entry : all) total += bytes(entry);
    const auto largest = std::ranges::max_element(all, {}, bytes);
    if (total <= max_bytes || largest->second.rows() < 2) return;
    largest->second.halve();
  }
}

}  // namespace

MetricsRows read_metrics(const std::filesystem::path& path, std::int64_t from,
                         const MetricsLimits& limits) {
  MetricsRows result;
  const auto file = open_if_present(path);
  if (!file) return result;
  const std::int64_t end = file->size();
  const std::int64_t begin = next_line(*file, end - limits.max_bytes, limits.max_line);
  SeriesByName all;
  for_each_line(*file, begin, end, limits.max_line,
                [&](std::int64_t offset, std::string_view line) {
                  const Heading heading = heading_of(line);
                  if (heading.step && *heading.step < from) return;
                  series_named(all, heading.series, limits.max_series)
                      .add({offset, std::ssize(line)}, limits.max_rows);
                });
  if (all.empty()) return result;
  thin_to(all, limits.max_text);

  std::vector<Line> lines;
  result.is_thinned = begin > 0;
  for (const auto& [name, series] : all) {
    series.append_to(lines);
    result.is_thinned = result.is_thinned || series.is_thinned();
  }
  std::ranges::sort(lines, {}, &Line::offset);
  std::string text;
  for (const Line& line : lines) {
    text.resize(static_cast<std::size_t>(line.length));
    text.resize(file->read(line.offset, text));
    auto row = parse_row(text);
    if (row && step_of(*row) >= from) result.rows.push_back(std::move(*row));
  }
  return result;
}

std::int64_t last_step(const std::filesystem::path& path) {
  constexpr std::ptrdiff_t max_attempts = 1000;
  const auto file = open_if_present(path);
  if (!file) return 0;
  const std::int64_t end = file->size();
  std::vector<std::string> lines;
  for_each_line(*file, next_line(*file, end - block_bytes, block_bytes), end, block_bytes,
                [&](std::int64_t, std::string_view line) { lines.emplace_back(line); });
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, std::ssize(lines) - max_attempts);
  for (std::ptrdiff_t i = std::ssize(lines) - 1; i >= first; --i) {
    if (const auto row = parse_row(lines[static_cast<std::size_t>(i)])) return step_of(*row);
  }
  return 0;
}

void MetricsReader::skip_to_end() {
  const auto file = open_if_present(file_);
  if (!file) return;
  const std::int64_t end = file->size();
  position_ = for_each_line(*file, next_line(*file, end - block_bytes, block_bytes), end,
                            block_bytes, [](std::int64_t, std::string_view) {});
}

std::vector<Json> MetricsReader::read_new() {
  std::vector<Json> rows;
  const auto file = open_if_present(file_);
  if (!file) return rows;
  const std::int64_t size = file->size();
  if (size < position_) position_ = next_line(*file, size - block_bytes, block_bytes);
  while (rows.empty() && position_ < size) {
    const std::int64_t end = std::min(size, position_ + block_bytes);
    const std::int64_t next =
        for_each_line(*file, position_, end, block_bytes, [&](std::int64_t, std::string_view line) {
          if (auto row = parse_row(line)) rows.push_back(std::move(*row));
        });
    if (next == position_ && end < position_ + block_bytes) break;  // a line that is being written
    // A line that fills a block is skipped; its rest is not valid JSON.
    position_ = next == position_ ? end : next;
  }
  return rows;
}

}  // namespace heed::server
