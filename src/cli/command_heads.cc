// heed heads: statistics of every attention head over a text or a whole file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/attend.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/result_file.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "microscope/attention/head_scan.h"

namespace heed::cli {
namespace {

struct HeadsOptions {
  std::string model = "starter";
  std::string dtype;
  TextOptions text;
  std::int64_t window = 0;   // tokens; 0: the model's context
  std::int64_t windows = 0;  // drawn at random; 0: all of the file
  std::uint64_t seed = 0;
  std::vector<std::string> statistics;
  std::string detect;
  std::string measure = "mul";
  bool exclude_first = false;
  bool exclude_own = false;
  std::string sort;
  std::size_t top = 0;
  InterventionOptions interventions;
  std::string out;
  bool json = false;
};

struct HeadRow {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  HeadStatistics statistics;
  std::optional<double> detected;

  double value(std::string_view name) const {
    const HeadStatistic* const statistic = find_head_statistic(name);
    return statistic != nullptr ? statistics.*statistic->value : detected.value_or(0);
  }
};

std::string statistic_names() {
  std::string names;
  for (const HeadStatistic& statistic : head_statistics_table()) {
    names += (names.empty() ? "" : ", ") + std::string(statistic.name);
  }
  return names;
}

std::string statistics_footer() {
  std::string text =
      "Statistics, as means over all queries but the first, which sees itself alone:\n";
  for (const HeadStatistic& statistic : head_statistics_table()) {
    text += fmt::format("  {:<10} {}\n", statistic.name, statistic.meaning);
  }
  return text;
}

// What a cell of the map is.
std::string meaning_of(const HeadsOptions& options, AttentionScope scope) {
  const HeadStatistic* by = find_head_statistic(options.sort);
  if (by != nullptr) {
    return fmt::format("{}; the mean over all queries{}", by->meaning,
                       scope == AttentionScope::past ? " but the first" : "");
  }
  return fmt::format("how well the head fits the {} pattern ({})", options.detect, options.measure);
}

void check_options(HeadsOptions& options) {
  for (const std::string& name : options.statistics) {
    if (find_head_statistic(name) == nullptr) {
      fail_usage(fmt::format("there is no statistic '{}'; there are {}", name, statistic_names()));
    }
  }
  if (options.statistics.empty()) {
    options.statistics = {"entropy",  "distance",  "first",    "self",
                          "previous", "duplicate", "induction"};
  }
  if (options.sort.empty()) options.sort = options.detect.empty() ? "induction" : "detected";
  const bool sorts_by_detection = options.sort == "detected" && !options.detect.empty();
  if (find_head_statistic(options.sort) == nullptr && !sorts_by_detection) {
    fail_usage(fmt::format("heads can be sorted by {}{}, not by '{}'", statistic_names(),
                           options.detect.empty() ? "" : " or detected", options.sort));
  }
  const bool has_file = !options.text.file.empty();
  if (options.windows > 0 && !has_file) fail_usage("--windows needs --text FILE");
  const InterventionOptions& edits = options.interventions;
  if (has_file && !edits.mean.empty() && edits.mean_text.empty()) {
    fail_usage("with --text FILE, --mean needs --mean-text");
  }
  if (has_file && !edits.freeze.empty() && edits.freeze_text.empty()) {
    fail_usage("with --text FILE, --freeze needs --freeze-text");
  }
}

// What is scanned: a text of at most a context, or windows of a file.
struct ScannedText {
  std::vector<std::int32_t> tokens;
  std::int64_t window = 0;             // tokens
  std::vector<std::int64_t> begins{};  // of the windows in the file, where they are sampled
};

ScannedText tokens_to_scan(const HeadsOptions& options, const LoadedModel& model) {
  const std::int64_t context = model.transformer.specification().context;
  const std::int64_t window = options.window > 0 ? options.window : context;
  if (options.text.file.empty() || options.text.text || !options.text.tokens.empty()) {
    return {.tokens = read_tokens(options.text, model), .window = window};
  }
  std::vector<std::int32_t> tokens = model.encode(MappedFile(options.text.file).text());
  if (options.windows == 0) return {.tokens = std::move(tokens), .window = window};
  WindowSample sample = sample_windows(tokens, window, options.windows, options.seed);
  return {.tokens = std::move(sample.tokens), .window = window, .begins = std::move(sample.begins)};
}

struct Scanned {
  std::vector<HeadRow> rows;
  ScannedText text;
  std::int64_t repeated = 0;  // tokens that occurred before
};

Scanned scan(const HeadsOptions& options, const LoadedModel& model, ScannedText text) {
  const std::vector<std::int32_t>& tokens = text.tokens;
  const auto editor =
      make_interventions(options.interventions, model, {.source = {}, .target = tokens},
                         {.end = std::min(text.window, std::ssize(tokens))});
  HeadScanOptions scanning{
      .editor = editor.get(), .window = options.window, .stop = interrupt_flag()};
  if (!options.detect.empty()) {
    scanning.detectors.push_back(
        {.pattern = *head_pattern_from_name(options.detect),
         .measure = options.measure == "mul" ? DetectionMeasure::mul : DetectionMeasure::abs,
         .exclude_first = options.exclude_first,
         .exclude_own = options.exclude_own});
  }
  ProgressLine line;
  if (!options.text.file.empty()) scanning.progress = line.callback();
  const HeadScan result = scan_heads(model.transformer, tokens, scanning);
  line.clear();
  Scanned scanned{.rows = {}, .text = {}, .repeated = result.repeated_queries()};
  for (std::int64_t layer = 0; layer < result.layers(); ++layer) {
    for (std::int64_t head = 0; head < result.heads(); ++head) {
      HeadRow row{.layer = layer, .head = head, .statistics = result.statistics(layer, head)};
      if (!options.detect.empty()) row.detected = result.detection(layer, head, 0);
      scanned.rows.push_back(row);
    }
  }
  scanned.text = std::move(text);
  return scanned;
}

std::vector<HeadRow> sorted(const HeadsOptions& options, std::vector<HeadRow> rows) {
  std::ranges::stable_sort(rows, std::greater{},
                           [&](const HeadRow& row) { return row.value(options.sort); });
  if (options.top > 0) rows.resize(std::min(options.top, rows.size()));
  return rows;
}

std::string number_text(std::string_view name, double value) {
  const HeadStatistic* statistic = find_head_statistic(name);
  return statistic != nullptr && statistic->unit == HeadStatistic::Unit::share
             ? percent(value)
             : fmt::format("{:.2f}", value);
}

// Blocks down, heads across; the largest of all is the brightest.
void print_map(const HeadsOptions& options, const StackSpecification& config,
               const std::vector<HeadRow>& rows, const Screen& screen) {
  double largest = 0;
  for (const HeadRow& row : rows) largest = std::max(largest, row.value(options.sort));
  const int label = 5, fitting = (screen.width() - label) / static_cast<int>(config.heads());
  const int cell = std::clamp(fitting, 1, 7);
  if (cell >= 3) {
    std::string heads(label, ' ');
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      heads += pad_left(std::to_string(head), cell);
    }
    print(screen.ink.quiet(heads) + "\n");
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    std::string line = screen.ink.quiet(pad_left(std::to_string(layer), label - 1) + " ");
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      const double value =
          rows[static_cast<std::size_t>(layer * config.heads() + head)].value(options.sort);
      const double share = largest > 0 ? std::max(value, 0.0) / largest : 0.0;
      if (cell < 6) {
        line += heat_cell(share, cell, screen.ink);
        continue;
      }
      const std::string text = pad_left(number_text(options.sort, value), cell);
      const Rgb colour = sequential_colour(scale_place(share));
      line += screen.ink.has_colours() ? screen.ink.paint(text, text_on(colour), colour) : text;
    }
    print(line + "\n");
  }
}

// A row a head; `in_words` says first what it mostly does.
std::string table_text(const HeadsOptions& options, const std::vector<HeadRow>& rows,
                       const Ink& ink, bool in_words) {
  std::vector<Table::Column> columns{{"head", Align::left}};
  if (in_words) columns.push_back({"mostly", Align::left});
  for (const std::string& name : options.statistics) columns.push_back({name, Align::right});
  if (!options.detect.empty()) columns.push_back({"fit", Align::right});
  Table table(columns);
  for (const HeadRow& row : rows) {
    std::vector<std::string> cells{
        ink.paint(fmt::format("L{}H{}", row.layer, row.head), colour::orange)};
    if (in_words) cells.push_back(habit_text(strongest_habit(row.statistics)));
    for (const std::string& name : options.statistics) {
      cells.push_back(number_text(name, row.value(name)));
    }
    if (row.detected) cells.push_back(fmt::format("{:.3f}", *row.detected));
    table.add(cells);
  }
  return table.text(ink);
}

// "3 windows of 128 tokens, drawn at random; they begin at 0, 512, 896"; empty where none are.
std::string windows_text(const ScannedText& text) {
  if (text.begins.empty()) return "";
  constexpr std::size_t max_listed = 12;
  const std::size_t listed = std::min(max_listed, text.begins.size());
  return fmt::format(
      "{} of {}, chosen at random; they begin at {}{}", counted(std::ssize(text.begins), "window"),
      counted(text.window, "token"), fmt::join(std::span(text.begins).first(listed), ", "),
      listed < text.begins.size() ? fmt::format(", … ({} more)", text.begins.size() - listed) : "");
}

void print_heads(const HeadsOptions& options, const LoadedModel& model, const Scanned& scanned) {
  const Screen screen;
  const StackSpecification& config = model.transformer.specification();
  print("\n" + screen.ink.title("Attention heads") +
        screen.ink.quiet(fmt::format("  {}, {} of them repeated; {} of {}\n",
                                     counted(std::ssize(scanned.text.tokens), "token"),
                                     grouped(scanned.repeated), counted(config.layers, "block"),
                                     counted(config.heads(), "head"))));
  const std::string windows = windows_text(scanned.text);
  if (!windows.empty()) {
    for (const std::string& line : wrap(windows, screen.width() - 2)) {
      print(screen.ink.quiet("  " + line) + "\n");
    }
  }
  const std::string changes = options.interventions.summary();
  if (!changes.empty()) print(screen.ink.quiet("  changed: " + printable(changes) + "\n"));
  const std::string legend = fmt::format(
      "{}: {}. Blocks down, heads across.", options.sort,
      meaning_of(options, attention_scope(model.transformer.architecture(), only_site)));
  for (const std::string& line : wrap(legend, screen.width() - 2)) {
    print(screen.ink.quiet("  " + line) + "\n");
  }
  print("\n");
  print_map(options, config, scanned.rows, screen);

  const std::vector<HeadRow> rows = sorted(options, scanned.rows);
  std::string table = table_text(options, rows, screen.ink, true);
  if (display_width(table.substr(0, table.find('\n'))) > screen.width()) {
    table = table_text(options, rows, screen.ink, false);
  }
  print("\n" + table);
}

void print_heads_json(const HeadsOptions& options, const LoadedModel& model,
                      const Scanned& scanned) {
  OrderedJson document{{"model", model.name},
                       {"token_count", scanned.text.tokens.size()},
                       {"repeated_count", scanned.repeated},
                       {"window", scanned.text.window}};
  if (!scanned.text.begins.empty()) document["window_begins"] = scanned.text.begins;
  document["heads"] = OrderedJson::array();
  if (options.interventions.any()) document["interventions"] = options.interventions.summary();
  if (!options.detect.empty()) {
    document["detect"] = {{"pattern", options.detect}, {"measure", options.measure}};
  }
  for (const HeadRow& row : sorted(options, scanned.rows)) {
    OrderedJson head{{"layer", row.layer}, {"head", row.head}};
    for (const HeadStatistic& statistic : head_statistics_table()) {
      if (!has_statistic(row.statistics.scope, statistic)) continue;
      head[std::string(statistic.name)] = json_number(row.statistics.*statistic.value);
    }
    if (row.detected) head["detected"] = json_number(*row.detected);
    document["heads"].push_back(std::move(head));
  }
  print_json(document);
}

// Layers by heads of what they are sorted by; all statistics as arrays.
void write_heads(const HeadsOptions& options, const LoadedModel& model, const Scanned& scanned) {
  const StackSpecification& config = model.transformer.specification();
  const Shape shape{config.layers, config.heads()};
  std::vector<std::pair<std::string, Tensor<float>>> arrays;
  const auto array_of = [&](std::string_view name) {
    Tensor<float> values(shape);
    for (std::int64_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(scanned.rows[static_cast<std::size_t>(i)].value(name));
    }
    return values;
  };
  for (const HeadStatistic& statistic : head_statistics_table()) {
    arrays.emplace_back(statistic.name, array_of(statistic.name));
  }
  if (!options.detect.empty()) arrays.emplace_back("detected", array_of("detected"));
  const Tensor<float> shown = array_of(options.sort);
  Result result{
      .text = {.title = "Attention heads: " + options.sort,
               .caption =
                   figure_caption(model, scanned.text.tokens, options.interventions.summary()) +
                   fmt::format(" Each cell: {}; {} tokens.",
                               meaning_of(options, attention_scope(model.transformer.architecture(),
                                                                   only_site)),
                               scanned.text.tokens.size())},
      .draw = [&](const FigureText& text) {
        return draw_heat_map({.values = shown.view(),
                              .row_labels = numbered("L", config.layers),
                              .column_labels = numbered("H", config.heads()),
                              .row_axis = "block",
                              .column_axis = "head",
                              .value_name = options.sort},
                             text);
      }};
  for (const auto& [name, values] : arrays) result.arrays.push_back({name, values.view()});
  write_result(options.out, result);
}

void heads(HeadsOptions& options) {
  check_out(options.out);
  check_options(options);
  const LoadedModel model = load_model_as(options.model, options.dtype);
  const Scanned scanned = scan(options, model, tokens_to_scan(options, model));
  write_heads(options, model, scanned);
  if (options.json) return print_heads_json(options, model, scanned);
  print_heads(options, model, scanned);
}

}  // namespace

void add_heads_command(Command app) {
  Command command = add_command(app, "heads", "Measure what every attention head attends to");
  auto options = std::make_shared<HeadsOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_text_options(*command, options->text);
  command->get_option("--text")->description("Scan a file of any length, window by window");
  command
      ->add_option("-c,--context", options->window,
                   "Split the file into windows of N tokens [context]")
      ->check(at_least(1));
  command->add_option("--windows", options->windows, "Scan N random windows of the file [all]")
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("-s,--seed", options->seed, "Seed the choice of --windows")
      ->check(any_seed())
      ->capture_default_str();
  add_list_option(*command, "--statistics", options->statistics,
                  "Show these statistics, listed below [most]")
      ->type_name("NAME,…");
  Option detect = command
                      ->add_option("--detect", options->detect,
                                   "Score a pattern: previous, duplicate or induction")
                      ->check(one_of({"previous", "duplicate", "induction"}))
                      ->type_name("PATTERN");
  command
      ->add_option("--measure", options->measure,
                   "Score by mul (weight inside) or abs (1 − distance)")
      ->check(one_of({"mul", "abs"}))
      ->needs(detect)
      ->capture_default_str()
      ->type_name("MEASURE");
  command->add_flag("--exclude-bos", options->exclude_first, "Ignore the first token in --detect")
      ->needs(detect);
  command
      ->add_flag("--exclude-current", options->exclude_own,
                 "Ignore each token's own position in --detect")
      ->needs(detect);
  command
      ->add_option("--sort", options->sort,
                   "Sort by this statistic, or detected [detected or induction]")
      ->type_name("NAME");
  command->add_option("--top", options->top, "List the first K heads [all]")
      ->check(at_least(1))
      ->type_name("K");
  add_out_option(*command, options->out);
  add_json_option(*command, options->json);
  add_intervention_options(*command, options->interventions);
  command->footer(statistics_footer() + intervention_footer);
  command->callback([options] { heads(*options); });
}

}  // namespace heed::cli
