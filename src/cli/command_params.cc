// heed params: where a model's parameters are, and what it costs.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
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
    for (const ModelPreset& preset : model_presets()) {
      list.push_back({{"name", preset.name},
                      {"description", preset.description},
                      {"total", count_parameters(preset.config).total}});
    }
    for (const ArchitecturePreset& preset : architecture_presets()) {
      list.push_back({{"name", preset.name},
                      {"description", preset.description},
                      {"total", count_parameters(preset.architecture).total}});
    }
    return print_json({{"configs", list}});
  }
  const Ink ink(standard_output());
  Table table({{"name", Align::left},
               {"blocks", Align::right},
               {"heads", Align::right},
               {"width", Align::right},
               {"context", Align::right},
               {"parameters", Align::right}});
  const auto add = [&](const std::string& name, const std::string& layers,
                       const StackSpecification& stack, std::int64_t total) {
    table.add({ink.bold(name), layers, std::to_string(stack.heads()), grouped(stack.channels),
               grouped(stack.context), short_count(static_cast<double>(total))});
  };
  for (const ModelPreset& preset : model_presets()) {
    add(preset.name, std::to_string(preset.config.layers), preset.config,
        count_parameters(preset.config).total);
  }
  for (const ArchitecturePreset& preset : architecture_presets()) {
    const Architecture& model = preset.architecture;
    add(preset.name,
        model.is_encoder_decoder()
            ? fmt::format("{} + {}", model.encoder().layers, model.decoder().layers)
            : std::to_string(model.decoder().layers),
        model.decoder(), count_parameters(model).total);
  }
  print("\n" + ink.title("Presets") +
        ink.quiet("  heed params NAME, a config.json or a model directory\n\n") + table.text(ink));
}

std::string positions_text(const StackSpecification& config) {
  switch (config.block.attention.positions) {
    case PositionKind::learned:
      return fmt::format("{} × {}", grouped(config.context), grouped(config.channels));
    case PositionKind::rotary: return "none: rotary positions";
    case PositionKind::sinusoidal: return "none: sines and cosines";
    case PositionKind::relative:
      return fmt::format("{} distances × {} heads", config.block.attention.relative.buckets,
                         config.heads());
    case PositionKind::none: return "none";
  }
  return "none";
}

// Of the stream and of what branches give, without those of queries and keys.
std::int64_t norms_of_block(const StackSpecification& stack) {
  const std::int64_t branches = stack.block.cross_attention ? 3 : 2;
  const bool norms_stream = stack.has_input_norms() || stack.is_post_norm();
  return (norms_stream ? branches - (stack.shares_norm() ? 1 : 0) : 0) +
         (stack.has_output_norms() ? branches : 0);
}

// The parts whose sum is the total.
void print_parts(const Architecture& architecture, const ParameterCount& count, const Ink& ink,
                 int width) {
  const int bar_width = std::clamp(width - 64, 12, 40);
  Table table({{"part", Align::left},
               {"size", Align::left},
               {"parameters", Align::right},
               {"", Align::right},
               {"", Align::left}});
  const auto add = [&](const std::string& part, const std::string& how, std::int64_t parameters) {
    const double share = static_cast<double>(parameters) / static_cast<double>(count.total);
    table.add({part, ink.quiet(how), grouped(parameters), percent(share),
               ink.paint(bar(share, bar_width), colour::blue)});
  };
  const StackSpecification& last = architecture.decoder();
  add("token embedding",
      fmt::format("{} × {}", grouped(last.vocabulary_size), grouped(last.channels)),
      count.embedding);
  add("position embedding", positions_text(last), count.position);
  std::int64_t norms = 0;
  for (const StackCount& stack : count_stacks(architecture)) {
    const StackSpecification& own = architecture.of(stack.site);
    const std::string name = stack.site == StackSite::only      ? ""
                             : stack.site == StackSite::encoder ? "encoder "
                                                                : "decoder ";
    const auto blocks = [&](std::int64_t parameters) {
      return fmt::format("{} × {}", own.layers, grouped(parameters / own.layers));
    };
    add(name + "attention", blocks(stack.attention), stack.attention);
    if (stack.cross_attention > 0) {
      add(name + "cross-attention", blocks(stack.cross_attention), stack.cross_attention);
    }
    add(name + "feed-forward", blocks(stack.feed_forward), stack.feed_forward);
    norms += norms_of_block(own) * own.layers + (own.final_norm ? 1 : 0) +
             (own.embedding_norm ? 1 : 0) + (own.prediction_head ? 1 : 0);
  }
  if (count.biases > 0) add("biases", "of linear layers", count.biases);
  add("norms", fmt::format("{} of them", norms), count.norms);
  const char* const unembedding = !last.has_unembedding   ? "none"
                                  : last.tied_unembedding ? "tied to the embedding"
                                                          : "untied";
  add("unembedding", unembedding, count.unembedding);
  table.add({ink.bold("total"), "", ink.bold(grouped(count.total)), "", ""});
  print(table.text(ink));
}

void print_head_parts(const StackSpecification& config, const ParameterCount& count,
                      const Ink& ink) {
  Table table(
      {{"attention head", Align::left}, {"shape", Align::left}, {"parameters", Align::right}});
  const std::string down = fmt::format("{} → {}", grouped(config.channels), config.head_size());
  const std::string up = fmt::format("{} → {}", config.head_size(), grouped(config.channels));
  const ParameterCount::Head& head = count.per_head;
  table.add({"query", ink.quiet(down), grouped(head.query)});
  table.add({"key", ink.quiet(down), grouped(head.key)});
  table.add({"value, down", ink.quiet(down), grouped(head.value_down)});
  table.add({"value, up", ink.quiet(up), grouped(head.value_up)});
  table.add({ink.bold("total of a head"), "", ink.bold(grouped(head.total))});
  const std::string heads = config.key_value_heads() == config.heads()
                                ? counted(config.heads(), "head")
                                : fmt::format("{} heads share {} keys and values", config.heads(),
                                              config.key_value_heads());
  table.add(
      {ink.bold("attention block"), ink.quiet(heads), ink.bold(grouped(count.attention_block))});
  print(table.text(ink));
}

void print_cost(const StackSpecification& config, const Ink& ink) {
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
  const Architecture architecture = find_architecture(options.model);
  const StackSpecification& config = architecture.decoder();
  if (options.json) return print_json(parameter_count_json(options.model, architecture));
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  const ParameterCount count = count_parameters(architecture);
  const std::string layers =
      architecture.is_encoder_decoder()
          ? fmt::format("{} + {} blocks", architecture.encoder().layers, config.layers)
          : fmt::format("{} blocks", config.layers);
  print(
      "\n" + ink.title(fit(options.model, 30)) +
      ink.quiet(fmt::format("  {}, {} of {}, width {}\n\n", layers, counted(config.heads(), "head"),
                            config.head_size(), grouped(config.channels))));
  print_parts(architecture, count, ink, terminal.width);
  print("\n");
  print_head_parts(config, count, ink);
  if (architecture.is_encoder_decoder()) return;  // costs are those of one text
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
