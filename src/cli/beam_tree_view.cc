#include "cli/beam_tree_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr std::int32_t no_rank = std::numeric_limits<std::int32_t>::max();
constexpr int step_width = 5;     // of the number of the step
constexpr int share_width = 6;    // "99.9 %"
constexpr int status_width = 14;  // two spaces, mark, rank, score
constexpr int min_text = 12;      // columns for words, however deep their branch is

// What lines are drawn with.
struct TreeStrokes {
  const char* dot;
  const char* branch;
  const char* past;  // of the same width as a branch
  const char* bar;
  const char* ended;
  const char* cut_off;
  const char* given_up;
  const char* middle;  // before the rest of a word
};
constexpr TreeStrokes drawn_strokes{"●", "├──", "│  ", "│", "■", "▷", "×", "…"};
constexpr TreeStrokes ascii_strokes{"*", "|--", "|  ", "|", "#", ">", "x", ".."};

// Whether the locale's encoding is UTF-8. Without a locale, as in many containers, terminals still
// show it.
bool shows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    const std::string locale = ascii_lower(std::string(value == nullptr ? "" : value));
    if (locale.empty()) continue;
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return true;
}

class BeamTreeDrawing {
 public:
  BeamTreeDrawing(const LoadedModel& model, const SearchedBeams& searched, const Terminal& terminal)
      : model_(model),
        searched_(searched),
        nodes_(searched.tree.nodes),
        ink_(terminal),
        strokes_(shows_utf8() ? drawn_strokes : ascii_strokes),
        width_(std::max(terminal.width, 40)),
        children_(nodes_.size()),
        own_rank_(nodes_.size(), no_rank),
        best_rank_(nodes_.size(), no_rank) {
    for (std::size_t i = 0; i < searched.tree.hypotheses.size(); ++i) {
      const auto node = static_cast<std::size_t>(searched.tree.hypotheses[i]);
      own_rank_[node] = best_rank_[node] = static_cast<std::int32_t>(i) + 1;
    }
    // Parents come before their children.
    for (std::size_t id = nodes_.size() - 1; id > 0; --id) {
      const auto parent = static_cast<std::size_t>(nodes_[id].parent);
      best_rank_[parent] = std::min(best_rank_[parent], best_rank_[id]);
      if (nodes_[id].fate != BeamFate::dropped)
        children_[parent].insert(children_[parent].begin(), id);
    }
  }

  std::string text(const std::string& source) {
    text_ = "\n" + header() + "\n";
    add_lines({.lead = std::string(step_width, ' ') + dot_of(1) + " ",
               .rest = std::string(step_width, ' ') + strokes_.bar + " ",
               .words = printable(source)});
    draw_children(0, "");
    return text_ + "\n" + hypotheses() + "\n" + legend();
  }

 private:
  // A line, and those that its words continue on.
  struct Line {
    std::string lead;
    std::string rest;  // as wide as the lead
    std::string words;
    std::int32_t rank = 1;  // the best that it leads to
    std::string status{};
  };

  std::string header() const {
    const auto count = [&](BeamFate fate) {
      return std::ranges::count(nodes_, fate, &BeamNode::fate);
    };
    const std::string what = fmt::format(
        "{}, length penalty {}, {}: {} looked at, {} kept, {} ended",
        counted(searched_.options.beams, "beam"), searched_.options.length_penalty,
        counted(nodes_.back().step, "step"), counted(std::ssize(nodes_) - 1, "candidate"),
        grouped(count(BeamFate::kept) - 1), grouped(count(BeamFate::finished)));
    std::string lines = "  " + ink_.title("Beam search") + "\n";
    for (const std::string& line : wrap(what, width_ - 2)) lines += "  " + ink_.quiet(line) + "\n";
    return lines;
  }

  std::string painted(const std::string& words, std::int32_t rank) const {
    if (rank == 1) return ink_.bold(words);
    return rank == no_rank ? ink_.quiet(words) : words;
  }
  std::string dot_of(std::int32_t rank) const {
    return ink_.paint(strokes_.dot, rank == 1         ? colour::orange
                                    : rank == no_rank ? colour::grey
                                                      : colour::blue);
  }

  void add_lines(const Line& line) {
    const int lead = display_width(line.lead);
    const bool has_status = !line.status.empty();
    // Where there is little room, a line of its own.
    const bool is_apart = width_ - lead - status_width < min_text;
    const bool is_beside = has_status && !is_apart;
    const int room = std::max(width_ - lead - (is_beside ? status_width : 0), min_text);
    const std::vector<std::string> pieces = wrap(line.words, room);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      text_ += (i == 0 ? line.lead : line.rest) + painted(pieces[i], line.rank);
      if (is_beside && i + 1 == pieces.size()) {
        text_ += std::string(std::max(room - display_width(pieces[i]), 0), ' ') + line.status;
      }
      text_ += "\n";
    }
    if (has_status && is_apart) text_ += line.rest + line.status + "\n";
  }

  // The branches first; below them, in the column of their parent, what leads to the best.
  void draw_children(std::size_t parent, const std::string& past) {
    const std::vector<std::size_t>& children = children_[parent];
    if (children.empty()) return;
    const std::size_t best =
        *std::ranges::min_element(children, {}, [&](std::size_t id) { return best_rank_[id]; });
    for (const std::size_t child : children) {
      if (child != best) draw_run(child, past + strokes_.branch, past + strokes_.past);
    }
    draw_run(best, past, past);
  }

  // A node and those after it, up to the next branch.
  void draw_run(std::size_t first, const std::string& lead, const std::string& past) {
    std::vector<std::size_t> run{first};
    while (children_[run.back()].size() == 1) run.push_back(children_[run.back()].front());
    const std::size_t last = run.back();
    const std::int32_t rank = best_rank_[first];
    const std::string step = pad_left(std::to_string(nodes_[first].step), step_width - 2) + "  ";
    const std::string share =
        pad_left(percent(std::exp(nodes_[first].log_probability)), share_width);
    const bool goes_on = !children_[last].empty();
    add_lines(
        {.lead = ink_.quiet(step + lead) + dot_of(rank) + " " + ink_.quiet(share) + "  ",
         .rest = ink_.quiet(std::string(step_width, ' ') + past + (goes_on ? strokes_.bar : " ")) +
                 std::string(share_width + 3, ' '),
         .words = words_of_run(run),
         .rank = rank,
         .status = goes_on ? "" : status_of(last)});
    draw_children(last, past);
  }

  std::string words_of_run(const std::vector<std::size_t>& run) const {
    std::vector<std::int32_t> tokens;
    for (const std::size_t id : run) {
      if (nodes_[id].fate != BeamFate::finished) tokens.push_back(nodes_[id].token);
    }
    if (tokens.empty()) return "(end)";
    std::string bytes;
    for (const std::string& each : model_.token_bytes(tokens)) bytes += each;
    const bool begins_word = bytes.starts_with(' ') || nodes_[run.front()].step == 1 ||
                             is_ascii_punctuation(bytes.front());
    const std::size_t letters = bytes.find_first_not_of(' ');
    std::string words = printable(letters == std::string::npos ? bytes : bytes.substr(letters));
    return begins_word ? words : strokes_.middle + words;
  }

  std::string status_of(std::size_t id) const {
    const BeamNode& node = nodes_[id];
    if (node.fate == BeamFate::kept && own_rank_[id] == no_rank) {
      return "  " + ink_.quiet(strokes_.given_up);
    }
    const double score =
        node.sum / std::pow(static_cast<double>(node.step), searched_.options.length_penalty);
    const char* const mark = node.fate == BeamFate::finished ? strokes_.ended : strokes_.cut_off;
    const bool is_ranked = own_rank_[id] != no_rank;
    const std::string number = is_ranked ? std::to_string(own_rank_[id]) : "";
    const std::string words =
        fmt::format("{} {}", pad_left(number, 2), pad_left(fmt::format("{:.3f}", score), 7));
    return "  " + ink_.paint(mark, own_rank_[id] == 1 ? colour::orange : colour::blue) + " " +
           painted(words, own_rank_[id]);
  }

  std::string hypotheses() const {
    std::string lines =
        "  " + ink_.quiet(fmt::format("{:>2}  {:>8}  {}", "", "score", "translation")) + "\n";
    for (std::size_t i = 0; i < searched_.hypotheses.size(); ++i) {
      const TokenHypothesis& hypothesis = searched_.hypotheses[i];
      std::string lead = fmt::format("  {:>2}  {:>8.4f}  ", i + 1, hypothesis.score);
      std::vector<std::string> pieces =
          wrap(printable(model_.target_text(hypothesis.tokens)), width_ - display_width(lead));
      if (pieces.empty()) pieces.emplace_back();
      for (const std::string& piece : pieces) {
        lines += lead + (i == 0 ? ink_.bold(piece) : piece) + "\n";
        lead = std::string(display_width(lead), ' ');
      }
    }
    return lines;
  }

  std::string legend() const {
    const std::string what = fmt::format(
        "In %: the probability of a line's first token. {} ended, with its place and its score; {} "
        "given up for likelier ones. What was dropped at once is not drawn: --json lists it.",
        strokes_.ended, strokes_.given_up);
    std::string lines;
    for (const std::string& line : wrap(what, width_ - 2)) lines += "  " + ink_.quiet(line) + "\n";
    return lines;
  }

  const LoadedModel& model_;
  const SearchedBeams& searched_;
  const std::vector<BeamNode>& nodes_;
  Ink ink_;
  const TreeStrokes& strokes_;
  int width_;
  std::vector<std::vector<std::size_t>> children_;  // that were not dropped, the likeliest first
  std::vector<std::int32_t> own_rank_;              // among the hypotheses, from 1
  std::vector<std::int32_t> best_rank_;             // of what a node leads to
  std::string text_;
};

}  // namespace

std::string draw_beam_tree(const LoadedModel& model, const std::string& source,
                           const SearchedBeams& searched, const Terminal& terminal) {
  return BeamTreeDrawing(model, searched, terminal).text(source);
}

}  // namespace heed::cli
