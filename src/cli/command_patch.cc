// heed patch: activation patching over a grid of points.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/pair_options.h"
#include "cli/result_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/token_json.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/recorded_pass.h"

namespace heed::cli {
namespace {

constexpr int margin = 16;
constexpr int tallest_column_label = 10;

void print_column_names(const std::vector<std::string>& names, int cell, const Ink& ink) {
  for (const std::string& line : written_downwards(names, tallest_column_label, cell, margin)) {
    print(ink.quiet(line) + "\n");
  }
}

std::string cell_text(double recovered, int width, const Ink& ink) {
  if (std::isnan(recovered)) return std::string(width, ' ');
  const double place = std::clamp(recovered, -1.0, 1.0);
  const double percents = std::round(100 * recovered) + 0.0;  // + 0: no "-0"
  std::string number = width >= 4 ? pad_left(fmt::format("{:.0f}", percents), width - 1) + " "
                                  : std::string(width, ' ');
  if (display_width(number) > width) number = std::string(width, ' ');
  if (ink.has_colours()) {
    const Rgb background = diverging_colour(place);
    return ink.paint(number, text_on(background), background);
  }
  if (width >= 4) return number;
  const char* const marks[] = {"·", "░", "▒", "▓", "█"};
  const auto mark = static_cast<std::size_t>(std::abs(place) * 4.999);
  return repeat(place < -0.2 ? "-" : marks[mark], width);
}

// Rows and columns with their names; a cell's colour is how much of the clean prompt's metric it
// brings back: none in the middle, all of it at one end, the opposite at the other.
void print_patch_map(const PatchResult& result, const std::vector<std::string>& row_names,
                     const std::vector<std::string>& column_names, const Terminal& terminal) {
  const Ink ink(terminal);
  const auto columns = static_cast<int>(result.columns);
  const int cell = std::clamp((terminal.width - margin) / std::max(columns, 1), 1, 5);
  if (cell > 1 || columns + margin <= terminal.width) print_column_names(column_names, cell, ink);
  for (std::int64_t row = 0; row < result.rows; ++row) {
    std::string line =
        pad_left(fit(row_names[static_cast<std::size_t>(row)], margin - 2), margin - 1) + " ";
    for (int column = 0; column < columns; ++column) {
      line += cell_text(result.recovered(row, column), cell, ink);
    }
    print(line + "\n");
  }
}

struct PatchOptions {
  std::string model = "starter";
  std::string dtype;
  std::string clean;
  std::string corrupted;
  std::string clean_tokens;
  std::string corrupted_tokens;
  std::string answer;
  std::string wrong;
  std::string metric = "logit-difference";
  std::string grid = "resid_pre";
  std::string method = "exact";
  std::string head;
  std::string kind;  // of a translator
  PairOptions pair;
  std::optional<std::string> corrupted_target;
  std::string out;
  std::int64_t memory_mebibytes = 256;
  bool json = false;
};

PatchMetric::Kind metric_kind(const std::string& name) {
  const std::vector<std::string> names{"logit-difference", "probability", "kl"};
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    fail_usage(fmt::format("there is no metric '{}'; expected {}", name, fmt::join(names, ", ")));
  }
  return static_cast<PatchMetric::Kind>(found - names.begin());
}

// The tokens of the clean text at the two axes of a plane.
struct AxisTokens {
  std::vector<std::string> queries;
  std::vector<std::string> keys;
};

// A request with what the output says of its model and texts.
struct PatchedTexts {
  std::string model;
  AttentionSpecification attention;
  PatchRequest request;
  AxisTokens bytes;
  OrderedJson document;   // the members that name the texts
  std::string caption;    // the beginning of a figure's
  std::string corrupted;  // for people
};

template <class Encode>
std::vector<std::int32_t> prompt(const std::string& text, const std::string& tokens,
                                 const char* name, const Encode& encode) {
  if (text.empty() == tokens.empty()) {
    fail_usage(fmt::format("give the {0} prompt once: as --{0} TEXT or as --{0}-tokens IDS", name));
  }
  return tokens.empty() ? encode(text) : parse_token_ids(tokens);
}

// The head of an edge grid, of the request's site.
void set_head(PatchRequest& request, const PatchOptions& options,
              const Architecture& architecture) {
  const bool edges = patch_grid_kind(request.grid).is_edge();
  if (edges == options.head.empty()) {
    fail_usage(edges ? fmt::format("--grid {} needs a --head, such as L2H3", options.grid)
                     : fmt::format("--head goes with the grids edge, edge_cut and "
                                   "edge_cut_renormalised, not with {}",
                                   options.grid));
  }
  if (!edges) return;
  const std::string site(site_name(patched_site(architecture, request).site));
  const bool is_prefixed = !architecture.is_encoder_decoder() || options.head.starts_with(site);
  const auto points =
      parse_points(architecture, is_prefixed ? options.head : site + "." + options.head);
  if (points.size() != 1 || points[0].where.heads.size() != 1) {
    fail_usage(fmt::format("--head '{}' is not a head; write it like L2H3", options.head));
  }
  request.layer = points[0].point.layer;
  request.head = points[0].where.heads[0];
}

// What both sources begin their translations with, where no target is given.
void set_targets(PatchRequest& request, const PatchOptions& options, const LoadedModel& model) {
  if (options.pair.any()) {
    request.clean.target = read_target(options.pair, model);
    request.corrupted.target = options.corrupted_target
                                   ? model.encode_target(*options.corrupted_target)
                                   : request.clean.target;
    return;
  }
  if (options.corrupted_target) fail_usage("--corrupted-target needs --target");
  const auto translated = [&](const std::vector<std::int32_t>& source) {
    return translated_pair(model, source, interrupt_flag()).tokens.target;
  };
  const std::vector<std::int32_t> clean = translated(request.clean.source);
  const std::vector<std::int32_t> corrupted = translated(request.corrupted.source);
  if (clean == corrupted) {
    fail_usage(fmt::format("both sources translate to “{}”: give --target",
                           printable(model.target_text(clean))));
  }
  const auto [end, other_end] = std::ranges::mismatch(clean, corrupted);
  request.clean.target.assign(clean.begin(), end);
  request.corrupted.target = request.clean.target;
}

// The likeliest token after a target.
std::int32_t next_token(const LoadedModel& model, Texts texts) {
  const RecordedPass pass(model.transformer, std::move(texts), {}, {.keep = Keep::one_block});
  const std::vector<double> next = pass.next_probabilities(pass.positions() - 1);
  return static_cast<std::int32_t>(std::ranges::max_element(next) - next.begin());
}

void set_answers(PatchRequest& request, const PatchOptions& options, const LoadedModel& model) {
  const auto token = [&](const std::string& text, const char* option, const Texts& texts) {
    if (!text.empty()) return single_token(model, text, option);
    if (!model.is_translator()) fail_usage(fmt::format("this metric needs {}", option));
    return next_token(model, texts);
  };
  if (request.metric.kind == PatchMetric::Kind::kl) return;
  request.metric.answer = token(options.answer, "--answer", request.clean);
  if (request.metric.kind != PatchMetric::Kind::logit_difference) return;
  request.metric.wrong = token(options.wrong, "--wrong", request.corrupted);
  if (model.is_translator() && request.metric.answer == request.metric.wrong) {
    fail_usage(fmt::format("both prompts predict “{}” next: give --answer and --wrong",
                           printable(model.target_text(std::span(&request.metric.answer, 1)))));
  }
}

// The text that --clean and --corrupted give: the source of a translator.
std::vector<std::int32_t> Texts::*given_text(const LoadedModel& model) {
  return model.is_translator() ? &Texts::source : &Texts::target;
}

PatchRequest patch_request(const PatchOptions& options, const LoadedModel& model) {
  PatchRequest request{.grid = patch_grid_from_name(options.grid)};
  request.metric.kind = metric_kind(options.metric);
  if (options.method == "attribution") request.method = PatchMethod::attribution;
  if (!options.out.empty() && request.method == PatchMethod::exact) {
    request.results = options.out + ".cells";
  }
  request.memory = options.memory_mebibytes << 20;
  request.site = options.kind;
  const bool is_pair = model.is_translator();
  const auto encode = [&](const std::string& text) {
    return is_pair ? model.encode_source(text) : model.encode(text);
  };
  request.clean.*given_text(model) = prompt(options.clean, options.clean_tokens, "clean", encode);
  request.corrupted.*given_text(model) =
      prompt(options.corrupted, options.corrupted_tokens, "corrupted", encode);
  if (is_pair) {
    set_targets(request, options, model);
    require_texts_fit(model.architecture(), request.clean);
    require_texts_fit(model.architecture(), request.corrupted);
  }
  set_answers(request, options, model);
  if (request.clean == request.corrupted) {
    fail_usage("the clean and the corrupted prompt are the same, token for token");
  }
  set_head(request, options, model.architecture());
  return request;
}

PatchedTexts patched_texts(const PatchOptions& options, const LoadedModel& model) {
  PatchRequest request = patch_request(options, model);
  const bool is_pair = model.is_translator();
  const AttentionSite site = patched_site(model.architecture(), request).site;
  const PairSide side = is_pair ? PairSide::source : PairSide::target;
  const std::vector<std::int32_t>& clean = request.clean.*given_text(model);
  const std::vector<std::int32_t>& corrupted = request.corrupted.*given_text(model);
  const auto text_of = [&](const std::vector<std::int32_t>& ids) {
    return printable(fmt::format("{}", fmt::join(model.token_bytes(ids, side), "")));
  };
  const std::vector<std::string> source = model.token_bytes(request.clean.source, PairSide::source);
  const std::vector<std::string> target = model.token_bytes(request.clean.target);
  const bool of_source = site.stack == StackSite::encoder;
  PatchedTexts texts{.model = model.name,
                     .attention = attention_of(model.architecture(), site),
                     .bytes = {of_source ? source : target,
                               of_source || site.kind == AttentionKind::cross ? source : target},
                     .corrupted = text_of(corrupted)};
  OrderedJson& document = texts.document;
  if (is_pair) document["site"] = site_name(site);
  document["clean_tokens"] = tokens_json(model, clean, side);
  document["corrupted_tokens"] = tokens_json(model, corrupted, side);
  if (is_pair) {
    document["clean_target"] = tokens_json(model, request.clean.target);
    document["corrupted_target"] = tokens_json(model, request.corrupted.target);
    for (const auto& [name, token] :
         {std::pair{"answer", request.metric.answer}, std::pair{"wrong", request.metric.wrong}}) {
      if (token >= 0) document[name] = token_json(model, token);
    }
    texts.caption = fmt::format("Model {}. Source: “{}”. Target: “{}”.", model.name, text_of(clean),
                                printable(model.target_text(request.clean.target)));
  } else {
    texts.caption = figure_caption(model, clean);
  }
  texts.request = std::move(request);
  return texts;
}

AxisTokens visible_tokens(AxisTokens tokens) {
  for (std::string& token : tokens.queries) token = visible(token);
  for (std::string& token : tokens.keys) token = visible(token);
  return tokens;
}

std::vector<std::string> row_names(const PatchResult& result, const AxisTokens& tokens) {
  std::vector<std::string> names;
  for (std::int64_t row = 0; row < result.rows; ++row) {
    names.push_back(patch_grid_kind(result.grid).is_edge()
                        ? fmt::format("{} {}", row, tokens.queries[static_cast<std::size_t>(row)])
                        : fmt::format("block {}", row));
  }
  return names;
}

std::vector<std::string> column_names(const PatchedTexts& texts, const PatchResult& result,
                                      const AxisTokens& tokens) {
  const PatchGridKind& kind = patch_grid_kind(result.grid);
  const bool is_of_keys =
      kind.is_edge() || kind.point == PointKind::key || kind.point == PointKind::value;
  const std::vector<std::string>& of_positions = is_of_keys ? tokens.keys : tokens.queries;
  const std::vector<std::string> heads = patched_head_names(texts.attention, kind);
  std::vector<std::string> names;
  for (std::size_t column = 0; column < static_cast<std::size_t>(result.columns); ++column) {
    const std::string& token = of_positions[column % of_positions.size()];
    if (kind.columns == PatchColumns::heads) {
      names.push_back(heads[column]);
    } else if (kind.columns == PatchColumns::heads_by_position) {
      names.push_back(fmt::format("{} {}", heads[column / of_positions.size()], token));
    } else {
      names.push_back(token);
    }
  }
  return names;
}

const char* column_axis(PatchGrid grid) {
  switch (patch_grid_kind(grid).columns) {
    case PatchColumns::positions: return "token";
    case PatchColumns::heads: return "head";
    case PatchColumns::heads_by_position: return "head and position";
    case PatchColumns::keys: return "key";
  }
  return "";
}

OrderedJson result_json(const PatchOptions& options, const PatchedTexts& texts,
                        const PatchResult& result) {
  OrderedJson values = OrderedJson::array();
  OrderedJson recovered = OrderedJson::array();
  for (std::int64_t row = 0; row < result.rows; ++row) {
    OrderedJson value_row = OrderedJson::array();
    OrderedJson recovered_row = OrderedJson::array();
    for (std::int64_t column = 0; column < result.columns; ++column) {
      value_row.push_back(json_number(result.value(row, column)));
      recovered_row.push_back(json_number(result.recovered(row, column)));
    }
    values.push_back(std::move(value_row));
    recovered.push_back(std::move(recovered_row));
  }
  OrderedJson document{{"model", texts.model},
                       {"grid", options.grid},
                       {"metric", options.metric},
                       {"method", options.method}};
  document.update(texts.document);
  document.update({{"clean", json_number(result.clean)},
                   {"corrupted", json_number(result.corrupted)},
                   {"rows", row_names(result, texts.bytes)},
                   {"columns", column_names(texts, result, texts.bytes)},
                   {"values", std::move(values)},
                   {"recovered", std::move(recovered)},
                   {"resumed_cells", result.resumed_cells}});
  return document;
}

std::string grid_title(const PatchOptions& options, const PatchedTexts& texts) {
  return texts.document.contains("site")
             ? fmt::format("{} of {}", options.grid, texts.document["site"].get<std::string>())
             : options.grid;
}

void print_result(const PatchOptions& options, const PatchedTexts& texts,
                  const PatchResult& result) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  const AxisTokens tokens = visible_tokens(texts.bytes);
  print("\n" + ink.title("Patching " + grid_title(options, texts)) +
        ink.quiet(fmt::format("  {}: clean {:.4g}, corrupted {:.4g}\n", options.metric,
                              result.clean, result.corrupted)));
  print(ink.quiet(
      fmt::format("  Recovered share of the clean prompt's metric, in %{}.\n\n",
                  texts.request.method == PatchMethod::exact ? "" : ", estimated from gradients")));
  const auto rows = row_names(result, tokens);
  const auto columns = column_names(texts, result, tokens);
  print_patch_map(result, rows, columns, terminal);

  std::vector<std::pair<std::int64_t, std::int64_t>> cells;
  for (std::int64_t row = 0; row < result.rows; ++row) {
    for (std::int64_t column = 0; column < result.columns; ++column) {
      if (!std::isnan(result.recovered(row, column))) cells.emplace_back(row, column);
    }
  }
  std::ranges::stable_sort(cells, std::greater<>{}, [&](const auto& cell) {
    return std::abs(result.recovered(cell.first, cell.second));
  });
  cells.resize(std::min<std::size_t>(cells.size(), 5));
  Table table({{"strongest", Align::left}, {"", Align::left}, {"recovered", Align::right}});
  for (const auto& [row, column] : cells) {
    table.add({rows[static_cast<std::size_t>(row)], columns[static_cast<std::size_t>(column)],
               fmt::format("{:.1f} %", 100 * result.recovered(row, column))});
  }
  print("\n" + table.text(ink));
}

void write_grid(const PatchOptions& options, const PatchedTexts& texts, const PatchResult& result) {
  if (options.out.ends_with(".json")) {
    return write_text_file(options.out,
                           result_json(options, texts, result)
                                   .dump(-1, ' ', false, OrderedJson::error_handler_t::replace) +
                               "\n");
  }
  Tensor<float> values(Shape{result.rows, result.columns});
  Tensor<float> recovered(values.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(result.values[static_cast<std::size_t>(i)]);
    recovered[i] = static_cast<float>(result.recovered(i / result.columns, i % result.columns));
  }
  const AxisTokens labels = visible_tokens(texts.bytes);
  const bool edges = patch_grid_kind(result.grid).is_edge();
  write_result(
      options.out,
      {.text = {.title = "Activation patching: " + grid_title(options, texts),
                .caption = texts.caption +
                           fmt::format(" Each cell patches one {} of it into the run on “{}”{}. "
                                       "0 is the metric of that run ({} {:.4g}), 1 that of the run "
                                       "on the text above ({:.4g}).",
                                       options.grid, texts.corrupted,
                                       texts.request.method == PatchMethod::exact
                                           ? ""
                                           : ", estimated to first order",
                                       options.metric, result.corrupted, result.clean)},
       .draw =
           [&](const FigureText& text) {
             return draw_heat_map({.values = std::as_const(recovered).view(),
                                   .row_labels = row_names(result, labels),
                                   .column_labels = column_names(texts, result, labels),
                                   .row_axis = edges ? "query" : "block",
                                   .column_axis = column_axis(result.grid),
                                   .value_name = "recovered",
                                   .scale = FigureScale::diverging},
                                  text);
           },
       .arrays = {{"values", std::as_const(values).view()},
                  {"recovered", std::as_const(recovered).view()}}});
}

void run_patch(const PatchOptions& options, const Transformer& model, PatchedTexts texts) {
  PatchRequest& request = texts.request;
  ProgressLine line;
  request.progress = [&line](std::int64_t done, std::int64_t cells) {
    line.update({"patching cells", done, cells});
    return !stop_requested(interrupt_flag());
  };
  const PatchResult result = patch_sweep(model, request);
  line.clear();
  write_grid(options, texts, result);
  if (!request.results.empty()) remove_file(request.results);
  if (options.json) return print_json(result_json(options, texts, result));
  print_result(options, texts, result);
}

void patch(const PatchOptions& options) {
  check_out(options.out);
  if (!options.dtype.empty() && is_translator(options.model)) {
    fail_usage("--dtype is for models of one stack");
  }
  const LoadedModel model = load_model_as(options.model, options.dtype, StacksWanted::any);
  require_no_pair_options(options.pair, model);
  if (!model.is_translator() && (options.corrupted_target || !options.kind.empty())) {
    fail_usage(fmt::format("'{}' has one stack: --kind and --corrupted-target need a translator",
                           options.model));
  }
  run_patch(options, model.transformer, patched_texts(options, model));
}

}  // namespace

void add_patch_command(Command app) {
  Command command = add_command(app, "patch", "Patch activations of one prompt into another");
  auto options = std::make_shared<PatchOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  const auto add = [&](const char* name, std::string& text, const char* type,
                       const char* description) {
    return command->add_option(name, text, description)->type_name(type);
  };
  add("--clean", options->clean, "TEXT", "Prompt with the correct answer; translator: a source");
  add("--corrupted", options->corrupted, "TEXT", "Same-length prompt with a different answer");
  add_list_option(*command, "--clean-tokens", options->clean_tokens, "Give --clean as token ids")
      ->type_name("ID,…");
  add_list_option(*command, "--corrupted-tokens", options->corrupted_tokens,
                  "Give --corrupted as token ids")
      ->type_name("ID,…");
  add_target_options(*command, options->pair, "both translations' shared beginning");
  command
      ->add_option_function<std::string>(
          "--corrupted-target",
          [options](const std::string& text) { options->corrupted_target = text; },
          "Translator: same-length target of --corrupted [--target]")
      ->type_name("TEXT");
  command
      ->add_option("--kind", options->kind, "Translator: patch encoder, decoder or cross [encoder]")
      ->check(one_of({"encoder", "decoder", "cross"}))
      ->type_name("KIND");
  add("--answer", options->answer, "TOKEN",
      "Answer to --clean, one token: ' Mary' or '#5335' [translator: the likeliest]");
  add("--wrong", options->wrong, "TOKEN", "Answer to --corrupted, one token [likewise]");
  add("--metric", options->metric, "NAME",
      "Measure logit-difference, probability (of --answer) or kl")
      ->capture_default_str();
  command->add_option("--grid", options->grid, "Patch this point in each cell, listed below")
      ->type_name("GRID")
      ->capture_default_str();
  command
      ->add_option("--method", options->method,
                   "Compute each cell exactly, or estimate it by attribution patching")
      ->check(one_of({"exact", "attribution"}))
      ->capture_default_str()
      ->type_name("METHOD");
  add("--head", options->head, "HEAD", "Patch this head's edges in an edge grid");
  add("-o,--out", options->out, "FILE",
      "Write .json, a figure (.svg, .png, .html) or arrays (.npz, .safetensors, .csv)");
  command
      ->add_option("--memory", options->memory_mebibytes,
                   "Use at most N MiB for cells computed together")
      ->capture_default_str()
      ->check(between(1, 1 << 20));
  add_json_option(*command, options->json);
  command->footer(fmt::format(
      "Grids: {}. Finished cells are saved in FILE.cells: repeat an interrupted call to resume it.",
      fmt::join(patch_grid_names(), ", ")));
  command->callback([command, options] {
    if (options->pair.any()) choose_translator(*command, options->model);
    patch(*options);
  });
}

}  // namespace heed::cli
