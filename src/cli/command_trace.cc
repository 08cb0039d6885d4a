// heed trace: activations and gradients as named arrays.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/json.h"
#include "base/numbers.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/pair_options.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/generations.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/files/array_files.h"
#include "microscope/traces/activation_trace.h"

namespace heed::cli {
namespace {

struct TraceOptions {
  std::string model = "starter";
  std::string dtype;
  TextOptions text;
  std::vector<std::string> points;
  std::string layers, heads, positions;
  std::string budget = "1GiB";
  std::int64_t new_tokens = 0;
  std::string logit, against;
  InterventionOptions interventions;
  PairOptions pair;
  std::string source_positions;  // of a translator
  std::string out;
  bool json = false;
};

// Every point there is, for --help.
std::string points_footer() {
  constexpr std::string_view block = "blocks.0.";
  std::string in_blocks;
  std::string once;
  for (const Point& point : all_points(1)) {
    const std::string name = point_name(point);
    const bool in_block = name.starts_with(block);
    std::string& names = in_block ? in_blocks : once;
    names += (names.empty() ? "" : ", ") + (in_block ? name.substr(block.size()) : name);
  }
  return fmt::format(
      "Points have TransformerLens's names: {}; in each block, after 'blocks.L.': {}. Globs such "
      "as 'blocks.*.hook_resid_pre' and short names such as resid_pre, k6 or pattern work, too; "
      "the suffix _grad exports the gradient. A translator's points are named encoder.L.… and "
      "decoder.L.…, its cross-attention decoder.L.cross_attn.…; short names follow their stack: "
      "encoder.resid_pre, cross.pattern1.\n",
      once, in_blocks);
}

// Of the elements that are finite: masked scores are not.
struct Range {
  double least = std::numeric_limits<double>::infinity();
  double mean = 0;
  double largest = -std::numeric_limits<double>::infinity();

  explicit Range(const TracedArray& array) {
    std::int64_t count = 0;
    for (const float value : array.values) {
      if (!std::isfinite(value)) continue;
      least = std::min<double>(least, value);
      largest = std::max<double>(largest, value);
      mean += value;
      ++count;
    }
    mean = count > 0 ? mean / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
};

// Of one text, or of the source and the target of a translator.
struct TracedTokens {
  std::string name;
  std::span<const std::int32_t> ids;
};

void write_trace(const TraceOptions& options, const std::string& model, const Trace& trace,
                 const std::vector<TracedTokens>& texts) {
  std::vector<NamedArray> arrays;
  for (const TracedArray& array : trace.arrays) {
    const Shape shape(array.shape.data(), static_cast<int>(array.shape.size()));
    arrays.push_back({array.name, View<const float>(array.values.data(), shape)});
  }
  for (const TracedTokens& text : texts) {
    arrays.push_back(
        {text.name, View<const std::int32_t>(text.ids.data(), {1, std::ssize(text.ids)})});
  }
  write_arrays(options.out, arrays, {{"model", model}});
}

// `document` has the model and the texts.
void print_trace_json(const TraceOptions& options, const Trace& trace, OrderedJson document) {
  document["arrays"] = OrderedJson::array();
  for (const TracedArray& array : trace.arrays) {
    const Range range(array);
    document["arrays"].push_back({{"name", array.name},
                                  {"shape", array.shape},
                                  {"min", json_number(range.least)},
                                  {"mean", json_number(range.mean)},
                                  {"max", json_number(range.largest)}});
  }
  if (!options.out.empty()) document["file"] = options.out;
  print_json(document);
}

void print_trace(const TraceOptions& options, const Trace& trace) {
  const Ink ink(standard_output());
  Table table({{"point", Align::left},
               {"shape", Align::left},
               {"min", Align::right},
               {"mean", Align::right},
               {"max", Align::right}});
  double bytes = 0;
  for (const TracedArray& array : trace.arrays) {
    const Range range(array);
    std::string shape;
    for (const std::int64_t extent : array.shape) {
      shape += (shape.empty() ? "" : " × ") + std::to_string(extent);
    }
    table.add({ink.paint(array.name, colour::blue), shape, short_number(range.least),
               short_number(range.mean), short_number(range.largest)});
    bytes += static_cast<double>(array.values.size() * sizeof(float));
  }
  print("\n" + ink.title("Activations") +
        ink.quiet(fmt::format("  {}, {}, {}\n\n", counted(std::ssize(trace.tokens), "token"),
                              counted(std::ssize(trace.arrays), "array"), short_bytes(bytes))));
  print(table.text(ink));
  print("\n  " +
        (options.out.empty()
             ? ink.quiet("--out FILE.npz, .safetensors, .json or .csv writes the arrays")
             : "written to " + ink.bold(options.out)) +
        "\n");
}

GradientTarget gradient_target(const TraceOptions& options, const TraceRequest& request,
                               const LoadedModel& model) {
  if (options.logit.empty() && !options.against.empty()) fail_usage("--against needs --logit");
  if (!options.logit.empty() && !asks_for_gradients(request)) {
    fail_usage("--logit needs a gradient among --points, such as resid_post_grad");
  }
  GradientTarget target;
  if (!options.logit.empty()) {
    target.logits.push_back(
        {.position = -1, .token = single_token(model, options.logit, "--logit")});
  }
  if (!options.against.empty()) {
    target.logits.push_back(
        {.position = -1, .token = single_token(model, options.against, "--against"), .weight = -1});
  }
  return target;
}

void trace_text(const TraceOptions& options) {
  if (!options.out.empty()) array_format(options.out);  // an unknown one is refused before the work
  const TraceRequest request{.points = options.points,
                             .layers = parse_indices(options.layers),
                             .heads = parse_indices(options.heads),
                             .positions = parse_indices(options.positions),
                             .source_positions = parse_indices(options.source_positions),
                             .budget = parse_bytes(options.budget)};
  const bool is_pair = is_translator(options.model);
  if (is_pair && options.new_tokens > 0) {
    fail_usage(
        "--new-tokens is not for translators: without --target, the target is the model's own "
        "translation");
  }
  if (!is_pair && !options.source_positions.empty()) {
    fail_usage("--source-positions needs a translator");
  }
  const LoadedModel model = load_model_as(options.model, options.dtype, StacksWanted::any);
  const Texts texts = read_texts(options.text, options.pair, model).tokens;
  const GradientTarget target = gradient_target(options, request, model);
  EditedPositions edited;
  if (options.new_tokens > 0) edited.end = std::ssize(texts.target) + options.new_tokens;
  const auto editor = make_interventions(options.interventions, model, texts, edited);
  const Trace trace = options.new_tokens > 0
                          ? trace_generation(model.transformer, texts.target, options.new_tokens,
                                             request, editor.get())
                          : trace_texts(model.transformer, texts, request, target, editor.get());
  if (!options.out.empty()) {
    using Tokens = std::vector<TracedTokens>;
    write_trace(options, model.name, trace,
                is_pair ? Tokens{{"source_tokens", texts.source}, {"target_tokens", texts.target}}
                        : Tokens{{"tokens", trace.tokens}});
  }
  if (!options.json) return print_trace(options, trace);
  OrderedJson document{{"model", model.name}};
  if (is_pair) {
    document["source"] = text_json(model, texts.source, PairSide::source);
    document["target"] = text_json(model, texts.target, PairSide::target);
  } else {
    document["tokens"] = tokens_json(model, trace.tokens);
  }
  print_trace_json(options, trace, std::move(document));
}

}  // namespace

void add_trace_command(Command app) {
  Command command = add_command(app, "trace", "Export activations and gradients");
  auto options = std::make_shared<TraceOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_text_options(*command, options->text);
  add_list_option(*command, "--points", options->points,
                  "Export these points: names, globs or short names; see below")
      ->required()
      ->type_name("NAME,…");
  add_list_option(*command, "--layers", options->layers, "Export these blocks, such as 0-3,7 [all]")
      ->type_name("L,…");
  add_list_option(*command, "--heads", options->heads, "Export these heads, such as 0-3,7 [all]")
      ->type_name("H,…");
  add_list_option(*command, "--positions", options->positions,
                  "Export these positions (queries of patterns); -1 is last [all]")
      ->type_name("T,…");
  add_target_options(*command, options->pair);
  add_list_option(*command, "--source-positions", options->source_positions,
                  "Translator: export these positions of the source [all]")
      ->type_name("T,…");
  command->add_option("--budget", options->budget, "Use at most this much memory, such as 500MB")
      ->capture_default_str()
      ->type_name("SIZE");
  command
      ->add_option("-n,--new-tokens", options->new_tokens,
                   "Continue greedily by N tokens and trace them too")
      ->check(at_least(0))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--logit", options->logit,
                   "Differentiate this token's logit after the text [mean loss]")
      ->type_name("TOKEN");
  command->add_option("--against", options->against, "Subtract this token's logit from --logit")
      ->type_name("TOKEN");
  command
      ->add_option("-o,--out", options->out,
                   "Write arrays to FILE.npz, .safetensors, .json or .csv")
      ->type_name("FILE");
  add_json_option(*command, options->json);
  add_intervention_options(*command, options->interventions);
  command->footer(points_footer() + intervention_footer);
  command->callback([options, command] {
    if (options->pair.any() || !options->source_positions.empty() ||
        options->interventions.name_two_texts()) {
      choose_translator(*command, options->model);
    }
    trace_text(*options);
  });
}

}  // namespace heed::cli
