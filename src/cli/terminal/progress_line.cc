#include "cli/terminal/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr std::chrono::milliseconds redraw_interval{100};
constexpr std::chrono::seconds log_interval{10};
constexpr int progress_bar_width = 20;

bool any_drawn = false;  // standard error holds a live line

void write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string duration_text(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string counts_text(const Progress& progress) {
  if (progress.total <= 0) return grouped(progress.done);
  return grouped(progress.done) + "/" + grouped(progress.total);
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(standard_error()), started_(Clock::now()) {
  last_ = started_;
}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(const Progress& progress, std::string_view detail) {
  const auto now = Clock::now();
  if (progress.what != what_) {
    what_ = progress.what;
    started_ = now;
    first_done_ = progress.done;
    last_ = terminal_.interactive ? Clock::time_point{} : now;
  }
  const bool finished = progress.total > 0 && progress.done >= progress.total;
  if (terminal_.interactive) {
    if (now - last_ < redraw_interval && !finished) return;
    last_ = now;
    terminal_.width = standard_error().width;
    write("\r\x1b[K" + bar_text(progress, detail));
    drawn_ = any_drawn = true;
  } else if (now - last_ >= log_interval) {
    last_ = now;
    write(plain_text(progress, detail) + "\n");
  }
}

void ProgressLine::log(std::string_view text) {
  clear();
  write(escape_controls_in_lines(text) + "\n");
}

void ProgressLine::clear() {
  if (drawn_) clear_any();
  drawn_ = false;
}

void ProgressLine::clear_any() {
  if (any_drawn) write("\r\x1b[K");
  any_drawn = false;
}

// "training  ███████▌            1,200/3,000  loss 2.31  1 min 20 s left"
std::string ProgressLine::bar_text(const Progress& progress, std::string_view detail) const {
  std::string line = progress.what + "  ";
  if (progress.total > 0) {
    const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
    line += pad_right(bar(share, progress_bar_width), progress_bar_width) + "  ";
  }
  line += counts_text(progress);
  if (!detail.empty()) line += "  " + std::string(detail);
  line += remaining_text(progress);
  // One column stays free: some terminals wrap as soon as the last one is written.
  return fit(escape_controls(line), terminal_.width - 1);
}

std::string ProgressLine::plain_text(const Progress& progress, std::string_view detail) const {
  std::string line = progress.what + " " + counts_text(progress);
  if (!detail.empty()) line += "  " + std::string(detail);
  return escape_controls(line) + remaining_text(progress);
}

std::string ProgressLine::remaining_text(const Progress& progress) const {
  const std::int64_t done = progress.done - first_done_;
  const auto elapsed = Clock::now() - started_;
  if (progress.total <= 0 || done <= 0 || elapsed < std::chrono::seconds(1)) return {};
  const double left = static_cast<double>(progress.total - progress.done) /
                      static_cast<double>(done) * std::chrono::duration<double>(elapsed).count();
  return "  " + duration_text(std::chrono::seconds(std::llround(left))) + " left";
}

}  // namespace heed::cli
