// heed params: where a model's parameters are, and what it costs.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal/bar.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/documents.h"
#include "engine/find_config.h"
#include "model/cache.h"
#include "model/parameter_count.h"
#include "model/presets.h"

namespace heed::cli {
namespace {

struct ParamsOptions {
  std::string model;
  bool json = false;
};

void print_presets(bool json) {
  if (json) {
    OrderedJson list = OrderedJson::array();
    for (const GptPreset& preset : gpt_presets()) {
      list.push_back({{"name", preset.name},
                      {"description", preset.description},
                      {"total", count_parameters(preset.config).total}});
    }
    return print_json({{"configs", list}});
  }
  const Ink ink(standard_output());
  Table table({{"name", Align::left},
               {"layers", Align::right},
               {"heads", Align::right},
               {"width", Align::right},
               {"context", Align::right},
               {"parameters", Align::right}});
  for (const GptPreset& preset : gpt_presets()) {
    const GptConfig& config = preset.config;
    table.add({ink.bold(preset.name), std::to_string(config.layers), std::to_string(config.heads),
               grouped(config.channels), grouped(config.context),
               short_count(static_cast<double>(count_parameters(config).total))});
  }
  print("\n" + ink.title("Presets") +
        ink.quiet("  heed params NAME, a config.json or a model directory\n\n") + table.text(ink));
}

// The parts whose sum is the total.
void print_parts(const GptConfig& config, const ParameterCount& count, const Ink& ink, int width) {
  const int bar_width = std::clamp(width - 64, 12, 40);
  Table table({{"part", Align::left},
               {"size", Align::left},
               {"parameters", Align::right},
               {"", Align::right},
               {"", Align::left}});
  const auto add = [&](const char* part, const std::string& how, std::int64_t parameters) {
    const double share = static_cast<double>(parameters) / static_cast<double>(count.total);
    table.add({part, ink.quiet(how), grouped(parameters), percent(share),
               ink.paint(bar(share, bar_width), colour::blue)});
  };
  const std::string c = grouped(config.channels);
  add("token embedding", fmt::format("{} × {}", grouped(config.vocabulary_size), c),
      count.embedding);
  add("position embedding", fmt::format("{} × {}", grouped(config.context), c), count.position);
  add("attention", fmt::format("{} × {}", config.layers, grouped(count.attention_block)),
      count.attention_total);
  add("feed-forward", fmt::format("{} × {}", config.layers, grouped(count.feed_forward_block)),
      count.feed_forward_total);
  if (count.biases > 0) add("biases", "of linear layers", count.biases);
  add("norms", fmt::format("{} of them", 2 * config.layers + 1), count.norms);
  add("unembedding", config.tied_unembedding ? "tied to the embedding" : "untied",
      count.unembedding);
  table.add({ink.bold("total"), "", ink.bold(grouped(count.total)), "", ""});
  print(table.text(ink));
}

void print_head_parts(const GptConfig& config, const ParameterCount& count, const Ink& ink) {
  Table table(
      {{"attention head", Align::left}, {"shape", Align::left}, {"parameters", Align::right}});
  const std::string down = fmt::format("{} → {}", grouped(config.channels), config.head_size);
  const std::string up = fmt::format("{} → {}", config.head_size, grouped(config.channels));
  const ParameterCount::Head& head = count.per_head;
  table.add({"query", ink.quiet(down), grouped(head.query)});
  table.add({"key", ink.quiet(down), grouped(head.key)});
  table.add({"value, down", ink.quiet(down), grouped(head.value_down)});
  table.add({"value, up", ink.quiet(up), grouped(head.value_up)});
  table.add({ink.bold("total of a head"), "", ink.bold(grouped(head.total))});
  table.add({ink.bold("attention block"), ink.quiet(fmt::format("{} heads", config.heads)),
             ink.bold(grouped(count.attention_block))});
  print(table.text(ink));
}

void print_cost(const GptConfig& config, const Ink& ink) {
  const ModelCost cost = model_cost(config);
  Table table({{"in f32", Align::left}, {"", Align::right}, {"", Align::left}});
  const auto bytes = [](std::int64_t count) { return short_bytes(static_cast<double>(count)); };
  table.add({"memory, inference", ink.bold(bytes(cost.run_bytes)),
             ink.quiet("weights, full key-value cache")});
  table.add({"memory, training", ink.bold(bytes(cost.train_bytes)),
             ink.quiet("weights, gradients, moments")});
  table.add(
      {"key-value cache, per token", bytes(cost.key_value_bytes_per_token), ink.quiet("in f32")});
  table.add({"  cached as bf16", bytes(cache_bytes(config, CacheType::bf16, 1)), ""});
  table.add({"  cached as int8", bytes(cache_bytes(config, CacheType::int8, 1)), ""});
  table.add({"FLOPs per token, inference", ink.bold(short_count(cost.flops_per_token)),
             ink.quiet("at full context")});
  table.add({"FLOPs per token, training", short_count(cost.train_flops_per_token),
             ink.quiet("forward and backward")});
  print(table.text(ink));
}

void params(const ParamsOptions& options) {
  if (options.model.empty()) return print_presets(options.json);
  const GptConfig config = find_gpt_config(options.model);
  if (options.json) return print_json(parameter_count_json(options.model, config));
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  const ParameterCount count = count_parameters(config);
  print("\n" + ink.title(fit(options.model, 30)) +
        ink.quiet(fmt::format("  {} layers, {} heads of {}, width {}\n\n", config.layers,
                              config.heads, config.head_size, grouped(config.channels))));
  print_parts(config, count, ink, terminal.width);
  print("\n");
  print_head_parts(config, count, ink);
  print("\n");
  print_cost(config, ink);
}

}  // namespace

void add_params_command(Command app) {
  Command command = add_command(app, "params", "Count parameters, memory and FLOPs");
  auto options = std::make_shared<ParamsOptions>();
  command->add_option("config", options->model, "Preset, config.json or model [list the presets]")
      ->type_name("NAME|FILE|DIR");
  add_json_option(*command, options->json);
  command->callback([options] { params(*options); });
}

}  // namespace heed::cli
