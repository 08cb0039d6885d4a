// The logit lens in the terminal, as JSON and in files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "cli/lens.h"
#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"
#include "tensor/tensor.h"

namespace heed::cli {

namespace {

constexpr int layer_columns = 7;  // "  L11  "
constexpr int narrowest_cell = 8;
constexpr int narrowest_followed = 12;  // " <.1% #50257"
constexpr int widest_cell = 14;

std::string row_name(const LogitLens& lens, std::int64_t point) {
  return point + 1 == std::ssize(lens.points) ? "out" : "L" + std::to_string(point);
}

double shown_probability(const LensRequest& request, const LensCell& cell) {
  return request.token ? cell.probability : cell.top.front().probability;
}

std::string cell_text(const ExplainedText& text, const LensRequest& request, const LensCell& cell) {
  if (request.token) {
    return fmt::format("{} #{}", percent(cell.probability), cell.rank + 1);
  }
  return visible(text.model.token_bytes(cell.top.front().token));
}

std::string painted(const std::string& text, double probability, int width, const Ink& ink) {
  std::string cell = pad_right(fit(" " + text, width - 1), width);
  if (!ink.has_colours()) return cell;
  const Rgb colour = sequential_colour(scale_place(probability));
  return ink.paint(cell, text_on(colour), colour);
}

// Positions [begin, end) beside each other, layers below each other.
void print_panel(const ExplainedText& text, const LensRequest& request, const LogitLens& lens,
                 std::int64_t begin, std::int64_t end, int cell, const Ink& ink) {
  std::string heading(layer_columns, ' ');
  for (std::int64_t t = begin; t < end; ++t) {
    heading +=
        pad_right(fit(" " + visible(text.model.token_bytes(text.tokens[t])), cell - 1), cell);
  }
  print(ink.bold(heading) + "\n");
  for (std::int64_t point = 0; point < std::ssize(lens.points); ++point) {
    std::string row = ink.quiet(pad_right("  " + row_name(lens, point), layer_columns));
    for (std::int64_t t = begin; t < end; ++t) {
      const LensCell& here = lens.at(point, t);
      row += painted(cell_text(text, request, here), shown_probability(request, here), cell, ink);
    }
    print(row + "\n");
  }
  print("\n");
}

std::string title(const ExplainedText& text, const LensRequest& request) {
  return request.token
             ? "Probability of “" + visible(text.model.token_bytes(*request.token)) + "” by block"
             : std::string("Next token by block");
}

}  // namespace

void print_lens(const ExplainedText& text, const LensRequest& request, const LogitLens& lens) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  print("\n" + ink.title(title(text, request)) + ink.quiet("  by the logit lens\n") +
        text.changes_line(ink) + "\n");
  const int room = std::max(narrowest_cell, terminal.width - layer_columns);
  const auto positions = static_cast<int>(lens.positions);
  const int narrowest = request.token ? narrowest_followed : narrowest_cell;
  const int most = std::max(1, room / narrowest);
  const int panels = (positions + most - 1) / most;
  const int per_panel = (positions + panels - 1) / panels;
  const int cell = std::clamp(room / per_panel, narrowest, widest_cell);
  for (int begin = 0; begin < positions; begin += per_panel) {
    print_panel(text, request, lens, begin, std::min(begin + per_panel, positions), cell, ink);
  }
  print(ink.quiet(
      "  L0 is the embedding, Ln the residual stream before block n, out the output.\n\n"));
  for (const std::string& line : scale_legend(ink)) print("  " + line + "\n");
}

OrderedJson lens_json(const ExplainedText& text, const LogitLens& lens) {
  OrderedJson rows = OrderedJson::array();
  for (std::int64_t point = 0; point < std::ssize(lens.points); ++point) {
    OrderedJson cells = OrderedJson::array();
    for (std::int64_t t = 0; t < lens.positions; ++t) {
      const LensCell& cell = lens.at(point, t);
      OrderedJson top = OrderedJson::array();
      for (const LensToken& token : cell.top) {
        OrderedJson row = token_json(text.model, token.token);
        row["probability"] = json_number(token.probability);
        top.push_back(std::move(row));
      }
      cells.push_back({{"position", t},
                       {"top", std::move(top)},
                       {"entropy", json_number(cell.entropy)},
                       {"kl_to_last", json_number(cell.divergence)},
                       {"logit", json_number(cell.logit)},
                       {"probability", json_number(cell.probability)},
                       {"rank", cell.rank}});
    }
    rows.push_back({{"point", point_name(lens.points[point])}, {"positions", std::move(cells)}});
  }
  return rows;
}

void write_lens(const std::string& path, const ExplainedText& text, const LensRequest& request,
                const LogitLens& lens) {
  if (path.empty()) return;
  const auto points = std::ssize(lens.points);
  const std::int64_t positions = lens.positions;
  const auto top = std::ssize(lens.at(0, 0).top);
  Tensor<float> probability(Shape{points, positions});
  Tensor<float> entropy(Shape{points, positions});
  Tensor<float> divergence(Shape{points, positions});
  Tensor<std::int32_t> rank(Shape{points, positions});
  Tensor<std::int32_t> top_tokens(Shape{points, positions, top});
  Tensor<float> top_probabilities(Shape{points, positions, top});
  std::vector<std::string> cell_texts;
  for (std::int64_t i = 0; i < points * positions; ++i) {
    const LensCell& cell = lens.cells[i];
    probability[i] = static_cast<float>(shown_probability(request, cell));
    entropy[i] = static_cast<float>(cell.entropy);
    divergence[i] = static_cast<float>(cell.divergence);
    rank[i] = static_cast<std::int32_t>(cell.rank);
    for (std::int64_t k = 0; k < top; ++k) {
      top_tokens[i * top + k] = cell.top[k].token;
      top_probabilities[i * top + k] = static_cast<float>(cell.top[k].probability);
    }
    cell_texts.push_back(cell_text(text, request, cell));
  }
  const View<const std::int32_t> tokens(text.tokens.data(), {positions});
  Result result{.text = {.title = title(text, request),
                         .caption = text.caption() +
                                    " Rows: hook_resid_pre of each block, then the stream "
                                    "after the last, through the final norm and the unembedding."},
                .arrays = {{"tokens", tokens},
                           {"probability", std::as_const(probability).view()},
                           {"entropy", std::as_const(entropy).view()},
                           {"kl_to_last", std::as_const(divergence).view()},
                           {"top_tokens", std::as_const(top_tokens).view()},
                           {"top_probabilities", std::as_const(top_probabilities).view()}}};
  if (request.options.norm == LensNorm::none) {
    result.text.caption += " Without the norm.";
  }
  if (request.token) result.arrays.push_back({"rank", std::as_const(rank).view()});
  result.draw = [&](const FigureText& figure_text) {
    std::vector<std::string> rows;
    for (std::int64_t point = 0; point < points; ++point) rows.push_back(row_name(lens, point));
    std::vector<std::string> columns;
    for (const std::int32_t token : text.tokens)
      columns.push_back(visible(text.model.token_bytes(token)));
    return draw_heat_map({.values = std::as_const(probability).view(),
                          .row_labels = rows,
                          .column_labels = columns,
                          .row_axis = "block",
                          .column_axis = "token",
                          .value_name = "probability",
                          .scale = FigureScale::share,
                          .cell_texts = cell_texts},
                         figure_text);
  };
  write_result(path, result);
}

namespace {

std::string depth_name(std::size_t depth, std::size_t depths) {
  if (depth == 0) return "embedding";
  return depth + 1 == depths ? "out" : fmt::format("L{}", depth - 1);
}

}  // namespace

void print_nearest(const ExplainedText& text, const NearestWordsByDepth& found) {
  const Ink ink(standard_output());
  Table table({{"depth", Align::left}, {"chance", Align::right}, {"nearest words", Align::left}});
  for (std::size_t depth = 0; depth < found.depths.size(); ++depth) {
    const NearestWords& here = found.depths[depth];
    std::string words;
    for (const NearWord& word : here.words) {
      words +=
          fmt::format("{}{} {:.2f}", words.empty() ? "" : "  ", text.name(word.token), word.cosine);
    }
    if (here.words.empty()) {
      words = ink.quiet(fmt::format("none nearer than chance ({} {:.2f})",
                                    text.name(here.best.token), here.best.cosine));
    }
    table.add({depth_name(depth, found.depths.size()), fmt::format("{:.2f}", here.chance),
               std::move(words)});
  }
  print("\n" + ink.title("Nearest words by block") +
        ink.quiet(fmt::format("  at {} {}, by the cosine with their embeddings, less the mean\n",
                              found.position,
                              text.name(text.tokens[static_cast<std::size_t>(found.position)]))) +
        text.changes_line(ink) + "\n" + table.text(ink));
  print(ink.quiet(fmt::format(
      "\n  Chance: the largest cosine of any word with the same numbers in {} random orders.\n"
      "  Ln is the residual stream before block n, out after the last one.\n",
      nearest_word_shuffles)));
}

namespace {

constexpr int max_bar = 30;

// The `top` parts of the largest shares, in the order of the pass.
std::vector<std::size_t> strongest(const ResidualParts& residual, std::size_t top) {
  std::vector<std::size_t> chosen(residual.parts.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
  std::ranges::stable_sort(chosen, std::greater{},
                           [&](std::size_t i) { return std::abs(residual.parts[i].share); });
  chosen.resize(std::min(chosen.size(), top));
  std::ranges::sort(chosen);
  return chosen;
}

std::string position_text(const ExplainedText& text, const ResidualParts& residual) {
  return fmt::format("after {} {}", residual.position,
                     text.name(text.tokens[static_cast<std::size_t>(residual.position)]));
}

}  // namespace

void print_residual(const ExplainedText& text, const ResidualParts& residual, std::size_t top) {
  const Ink ink(standard_output());
  const std::vector<std::size_t> shown = strongest(residual, top);
  double largest = 1e-12;
  for (const std::size_t i : shown) largest = std::max(largest, std::abs(residual.parts[i].share));
  Table table({{"part", Align::left},
               {"length", Align::right},
               {"cosine", Align::right},
               {"share", Align::right},
               {"", Align::left}});
  for (const std::size_t i : shown) {
    const ResidualPart& part = residual.parts[i];
    const std::string bar =
        repeat("█", static_cast<int>(std::lround(max_bar * std::abs(part.share) / largest)));
    table.add({part.name, fmt::format("{:.2f}", part.length), fmt::format("{:+.2f}", part.cosine),
               fmt::format("{:+.1f} %", 100 * part.share),
               ink.paint(bar, part.share < 0 ? colour::blue : colour::orange)});
  }
  print("\n" + ink.title("Final residual stream by part") +
        ink.quiet(fmt::format("  {}\n", position_text(text, residual))) + text.changes_line(ink) +
        "\n" + table.text(ink));
  const std::size_t rest = residual.parts.size() - shown.size();
  print(ink.quiet(
      fmt::format("\n  Share: part · stream / ‖stream‖²; all {} parts sum to 100 %{}.\n",
                  residual.parts.size(), rest > 0 ? fmt::format(", {} are not shown", rest) : "")));
}

OrderedJson residual_json(const ResidualParts& residual) {
  OrderedJson parts = OrderedJson::array();
  for (const ResidualPart& part : residual.parts) {
    parts.push_back({{"name", part.name},
                     {"length", json_number(part.length)},
                     {"cosine", json_number(part.cosine)},
                     {"share", json_number(part.share)}});
  }
  return {{"position", residual.position}, {"parts", std::move(parts)}};
}

void write_residual(const std::string& path, const ExplainedText& text,
                    const ResidualParts& residual, std::size_t top) {
  if (path.empty()) return;
  const View<const std::int32_t> tokens(text.tokens.data(), {std::ssize(text.tokens)});
  write_result(
      path, {.text = {.title = "Final residual stream by part, " + position_text(text, residual),
                      .caption = text.caption() +
                                 " part · stream / ‖stream‖² of what was written to the last "
                                 "hook_resid_post; all parts sum to 1."},
             .draw =
                 [&](const FigureText& figure_text) {
                   BarFigure bars{.value_name = "share"};
                   for (const std::size_t i : strongest(residual, top)) {
                     bars.labels.push_back(residual.parts[i].name);
                     bars.values.push_back(residual.parts[i].share);
                   }
                   return draw_bars(bars, figure_text);
                 },
             .arrays = {{"vectors", residual.vectors.view()},
                        {"stream",
                         View<const float>(residual.stream.data(), {std::ssize(residual.stream)})},
                        {"tokens", tokens}}});
}

}  // namespace heed::cli
