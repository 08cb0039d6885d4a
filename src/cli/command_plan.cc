// heed plan: what a training run takes on a cluster that is described.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/json.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/threads.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/bench/training_rates.h"
#include "engine/bench/work_cost.h"
#include "engine/plan/gpus.h"
#include "engine/plan/plan_report.h"

namespace heed::cli {
namespace {

// Of a unit that ends in s: "1 pass", "8 passes".
std::string number_of(std::int64_t count, const char* unit) {
  return fmt::format("{} {}{}", grouped(count), unit, count == 1 ? "" : "es");
}

std::string short_duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 1000) return fmt::format("{:.2f} s", seconds);
  return grouped(static_cast<std::int64_t>(seconds)) + " s";
}

// Days where there are any, else what there is.
std::string long_duration(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  constexpr double year = 365.25 * day;
  if (seconds >= 100 * year) return short_count(seconds / year) + " years";
  if (seconds >= 100 * day) return grouped(static_cast<std::int64_t>(seconds / day)) + " days";
  if (seconds >= day) return fmt::format("{:.1f} days", seconds / day);
  if (seconds >= hour) return fmt::format("{:.1f} hours", seconds / hour);
  if (seconds >= minute) return fmt::format("{:.1f} minutes", seconds / minute);
  return short_duration(seconds);
}

void print_title(const PlanReport& report, const Ink& ink) {
  const ScalingPlan& plan = report.plan;
  const Cluster& cluster = plan.cluster;
  print("\n" + ink.title(fit(report.name, 30)) +
        ink.quiet(fmt::format("  {} parameters on {} of {} {}, {} in all\n\n",
                              short_count(real(plan.parameters)), counted(cluster.nodes, "node"),
                              fmt::format("{:.4g}", cluster.cores_per_node),
                              cluster.cores_per_node == 1 ? "core" : "cores",
                              number_of(cluster.processes(), "process"))));
}

void print_memory(const ScalingPlan& plan, const Ink& ink, int width) {
  const PlannedMemory& memory = plan.memory;
  const int stage = plan.distribution.shard;
  const bool alone = plan.cluster.processes() == 1;
  const int bar_width = std::clamp(width - 72, 6, 40);
  Table table({{"memory of a process", Align::left},
               {"", Align::right},
               {"", Align::right},
               {"", Align::left},
               {"", Align::left}});
  const auto add = [&](const char* part, std::int64_t bytes, const std::string& note) {
    const double share = real(bytes) / real(memory.total());
    table.add({part, short_bytes(real(bytes)), percent(share),
               ink.paint(bar(share, bar_width), colour::blue), ink.quiet(note)});
  };
  const auto whole_or_share = [&](int sharded_from) {
    return std::string(alone ? "" : stage >= sharded_from ? "a share of each" : "whole in each");
  };
  add("parameters", memory.parameters, whole_or_share(3));
  add("gradients", memory.gradients, whole_or_share(2));
  add("moments", memory.moments, whole_or_share(1));
  add("activations", memory.activations,
      counted(plan.own_sequences, "sequence") + (plan.settings.recompute ? ", recomputed" : ""));
  add("buffers", memory.working, "of passes and evaluations");
  if (memory.exchange > 0) add("exchange", memory.exchange, "received, gathered");
  const double node = real(memory.total()) * real(plan.cluster.processes_per_node);
  table.add({ink.bold("total"), ink.bold(short_bytes(real(memory.total()))), "", "",
             plan.cluster.memory_per_node == 0
                 ? ""
                 : fmt::format("{} {} a node",
                               node <= real(plan.cluster.memory_per_node) ? "fits" : "exceeds",
                               short_bytes(plan.cluster.memory_per_node))});
  print(table.text(ink));
}

void print_step(const ScalingPlan& plan, const Ink& ink, int width) {
  const PlannedStep& step = plan.step;
  const int bar_width = std::clamp(width - 72, 6, 40);
  Table table({{"a step", Align::left},
               {"", Align::right},
               {"", Align::right},
               {"", Align::left},
               {"", Align::left}});
  const auto add = [&](const char* part, double seconds, Rgb paint, const std::string& note) {
    const double share = seconds / step.total();
    table.add({part, short_duration(seconds), percent(share),
               ink.paint(bar(share, bar_width), paint), ink.quiet(note)});
  };
  const auto add_exchange = [&](const char* part, const PlannedExchange& exchange) {
    if (exchange.seconds() <= 0) return;
    std::string note = short_bytes(exchange.bytes);
    if (exchange.hidden > 0) note += ", " + short_duration(exchange.hidden) + " hidden";
    add(part, exchange.exposed(), colour::orange, note);
  };
  add("forward", step.forward, colour::blue,
      number_of(plan.settings.accumulation, "pass") +
          fmt::format(" of {}", counted(plan.own_sequences * plan.settings.sequence(), "token")));
  add("backward", step.backward, colour::blue, plan.settings.recompute ? "with a forward" : "");
  add("update", step.update, colour::blue, "AdamW, sums of gradients");
  add_exchange("exchange gradients", step.gradients);
  add_exchange("exchange parameters", step.parameters);
  add_exchange("exchange keys, values", step.ring);
  if (step.agreement > 0) add("agreement", step.agreement, colour::orange, "small messages");
  table.add({ink.bold("total"), ink.bold(short_duration(step.total())), "", "",
             counted(static_cast<std::int64_t>(plan.tokens_per_step), "token")});
  print(table.text(ink));
}

void print_run(const PlanReport& report, const Ink& ink) {
  const ScalingPlan& plan = report.plan;
  const TrainingBill& bill = report.bill;
  Table table({{"the run", Align::left}, {"", Align::right}, {"", Align::left}});
  table.add({"tokens a second", ink.bold(short_count(plan.tokens_per_second())),
             ink.quiet(short_count(plan.flops_per_second()) + " FLOP/s")});
  table.add({"efficiency", ink.bold(percent(plan.efficiency)),
             ink.quiet("of as many processes that never wait")});
  table.add({"time", ink.bold(long_duration(bill.seconds)),
             ink.quiet(fmt::format("{} tokens, {} operations", short_count(bill.tokens),
                                   short_number(bill.operations)))});
  if (bill.price > 0) {
    table.add({"price", ink.bold(grouped(static_cast<std::int64_t>(bill.price))),
               ink.quiet(fmt::format("{} node-hours", short_count(bill.node_hours)))});
  }
  if (report.min_nodes) {
    table.add({"nodes for the memory", std::to_string(*report.min_nodes), ink.quiet("at least")});
  }
  print(table.text(ink));
}

void print_sweep(const PlanReport& report, const Ink& ink) {
  constexpr int bar_width = 6;
  Table table({{"nodes", Align::right},
               {"step", Align::right},
               {"tokens/s", Align::right},
               {"efficiency", Align::left},
               {"time", Align::right},
               {"memory", Align::right},
               {"limit", Align::left}});
  for (const ScalingPlan& each : report.sweep) {
    const std::string nodes = grouped(each.cluster.nodes);
    const bool chosen = each.cluster.nodes == report.plan.cluster.nodes;
    const double step = each.step.total();
    table.add({chosen ? ink.bold(nodes) : nodes,
               step < 100'000 ? short_duration(step) : long_duration(step),
               short_count(each.tokens_per_second()),
               fmt::format("{:>5} {}", percent(each.efficiency),
                           ink.paint(bar(std::min(each.efficiency, 1.0), bar_width), colour::blue)),
               long_duration(training_bill(each, report.bill.tokens).seconds),
               short_bytes(real(each.memory.total())) + (each.fits ? "" : " !"),
               std::string(plan_limit_name(each.limit))});
  }
  print(table.text(ink));
}

void print_plan(const PlanReport& report) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  print_title(report, ink);
  print_memory(report.plan, ink, terminal.width);
  print("\n");
  print_step(report.plan, ink, terminal.width);
  print("\n");
  print_run(report, ink);
  print("\n");
  print_sweep(report, ink);
  print("\n");
  for (const std::string& line : wrap(report.limit, std::max(terminal.width - 4, 40))) {
    print("  " + line + "\n");
  }
}

struct PlanOptions {
  std::string config;
  std::vector<std::string> settings;
  std::string dtype;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> context;
  std::int64_t nodes = 1;
  std::int64_t processes_per_node = 1;
  // Quantities with units; empty: this machine's, or not known.
  std::string cores, memory, price, flops, read, copies, tokens;
  std::string gpu;                // of each process; empty: processors
  std::string gpu_share = "0.4";  // of its published operations that products sustain
  std::string bandwidth = "10Gbit";
  std::string latency = "50us";
  std::string exchange = "during";
  // Absent: as the run's settings say.
  std::optional<int> shard;
  std::optional<std::string> wire;
  std::optional<std::int64_t> sequence_parallel;
  bool json = false;
};

Check is_quantity(Quantity quantity) {
  return [quantity](const std::string& text) { return quantity_problem(text, quantity); };
}

double given_or(const std::string& text, Quantity quantity, double otherwise) {
  return text.empty() ? otherwise : parse_quantity(text, quantity);
}

TrainSettings settings_of(const PlanOptions& options) {
  TrainSettings settings = planned_settings(options.config);
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      fail_usage(fmt::format("--set takes name=value, not '{}'", setting));
    }
    set_setting(settings, setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (options.context) settings.model.context = settings.sequence_length = *options.context;
  if (options.batch) {
    settings.batch_size = *options.batch;
    settings.accumulation = 1;
  }
  if (!options.dtype.empty()) set_setting(settings, "precision", options.dtype);
  return settings;
}

// A GPU counts as the one core of its process.
Cluster cluster_of(const PlanOptions& options) {
  const auto processes = static_cast<double>(options.processes_per_node);
  const double cores = options.gpu.empty() ? thread_count() : processes;
  const double memory = options.gpu.empty() ? static_cast<double>(available_memory().value_or(0))
                                            : processes * find_gpu(options.gpu).memory;
  return {.nodes = options.nodes,
          .processes_per_node = options.processes_per_node,
          .cores_per_node = given_or(options.cores, Quantity::number, cores),
          .memory_per_node = given_or(options.memory, Quantity::bytes, memory),
          .bandwidth = parse_quantity(options.bandwidth, Quantity::rate),
          .latency = parse_quantity(options.latency, Quantity::time),
          .price_per_node_hour = given_or(options.price, Quantity::number, 0)};
}

Distribution distribution_of(const PlanOptions& options, const TrainSettings& settings) {
  const bool halves = options.wire ? *options.wire == "bf16" : settings.wire == Wire::bf16;
  return {.shard = options.shard.value_or(static_cast<int>(settings.shard)),
          .wire = halves ? Distribution::Wire::bf16 : Distribution::Wire::f32,
          .sequence_parallel = options.sequence_parallel.value_or(settings.sequence_parallel),
          .exchange = options.exchange == "during" ? Distribution::Exchange::during_backward
                                                   : Distribution::Exchange::after_backward};
}

// What is given, and the rest as measured here with as many threads as a process has cores. There
// is nothing to save: an interrupt ends the program at once.
TrainingRates rates_of(const PlanOptions& options, PlanRequest& request) {
  ProgressLine line;
  const double cores = request.cluster.cores_per_process();
  const ScalingPlan shape = plan_scaling(request.settings, request.cluster, request.distribution,
                                         TrainingRates::uniform(1, 1));
  const RateMeasurement measurement{
      .threads = static_cast<int>(std::clamp(cores, 1.0, static_cast<double>(thread_count()))),
      .sequences = shape.own_sequences,
      .progress = line.callback()};
  TrainingRates rates;
  if (!options.gpu.empty()) {
    const Gpu& gpu = find_gpu(options.gpu);
    const double share = parse_quantity(options.gpu_share, Quantity::number);
    if (share <= 0 || share > 1)
      fail_usage("--gpu-share takes a share of 1, not " + options.gpu_share);
    const double products = options.flops.empty() ? share * gpu.products
                                                  : parse_quantity(options.flops, Quantity::count);
    rates = TrainingRates::uniform(products, gpu.bandwidth);
    rates.copies = gpu.link;
  } else if (options.flops.empty()) {
    rates = measure_training_rates(request.settings, measurement);
  } else {
    rates = TrainingRates::uniform(parse_quantity(options.flops, Quantity::count), 0);
    if (options.read.empty()) rates.memory = measure_memory_rate(shape.parameters, measurement);
  }
  if (!options.read.empty()) rates.memory = parse_quantity(options.read, Quantity::rate);
  rates.copies = given_or(options.copies, Quantity::rate, rates.copies);
  line.clear();
  return rates;
}

void plan(const PlanOptions& options) {
  PlanRequest request{.name = options.config,
                      .settings = settings_of(options),
                      .cluster = cluster_of(options),
                      .distribution = {}};
  request.distribution = distribution_of(options, request.settings);
  request.settings.sequence_parallel = 1;  // sequences are divided by the plan
  request.tokens =
      given_or(options.tokens, Quantity::count, usual_tokens(options.config, request.settings));
  request.rates = rates_of(options, request);
  const PlanReport report = make_plan_report(request);
  if (options.json) return print_json(plan_report_json(report));
  print_plan(report);
}

void add_cluster_options(Command command, PlanOptions& options) {
  command.add_option("--nodes", options.nodes, "Train on N nodes")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--processes-per-node", options.processes_per_node, "Start N on each node")
      ->check(at_least(1))
      ->capture_default_str()
      ->type_name("N");
  const auto add = [&](const char* name, std::string& value, Quantity quantity, const char* unit,
                       const char* description) {
    return command.add_option(name, value, description)
        ->check(is_quantity(quantity))
        ->type_name(unit);
  };
  command.add_option("--gpu", options.gpu, "Train on GPUs, one for each process: a100, h100, …")
      ->type_name("NAME");
  add("--gpu-share", options.gpu_share, Quantity::number, "X",
      "The share of a GPU's published operations that products sustain")
      ->capture_default_str();
  add("--cores", options.cores, Quantity::number, "N",
      "Cores of a node, shared ones as fractions [this machine's]");
  add("--memory", options.memory, Quantity::bytes, "BYTES",
      "Memory of a node: 512GB, 64GiB [free here]");
  add("--bandwidth", options.bandwidth, Quantity::rate, "RATE",
      "Bandwidth of a node's link: 10Gbit, 1.25GB")
      ->capture_default_str();
  add("--latency", options.latency, Quantity::time, "TIME", "One-way latency: 50us, 1ms")
      ->capture_default_str();
  add("--flops", options.flops, Quantity::count, "N",
      "Operations per second that a core sustains [measured here]");
  add("--read", options.read, Quantity::rate, "RATE", "Memory bandwidth of a core [measured here]");
  add("--copies", options.copies, Quantity::rate, "RATE",
      "What a core can send, and receive at the same time [a quarter of --read]");
  add("--price", options.price, Quantity::number, "X", "Price of a node for an hour [none]");
}

void add_run_options(Command command, PlanOptions& options) {
  command.add_option("--set", options.settings, "Set a training setting: batch_size=512")
      ->take_all()
      ->type_name("NAME=VALUE");
  command.add_option("-b,--batch", options.batch, "Train on N sequences a step [the config's]")
      ->check(at_least(1))
      ->type_name("N");
  command.add_option("-c,--context", options.context, "Sequences of T tokens [the config's]")
      ->check(at_least(1))
      ->type_name("T");
  command.add_option("--dtype", options.dtype, "Multiply in f32 or bf16 [the faster one here]")
      ->check(one_of({"f32", "bf16"}))
      ->type_name("DTYPE");
  command.add_option("--tokens", options.tokens, "Train on N tokens: 300B [the config's]")
      ->check(is_quantity(Quantity::count))
      ->type_name("N");
  command
      .add_option("--shard", options.shard,
                  "Shard moments (1), gradients too (2), parameters too (3) [as set]")
      ->check(between(1, 3))
      ->type_name("STAGE");
  command.add_option("--wire", options.wire, "Send f32 or bf16 [as set]")
      ->check(one_of({"f32", "bf16"}))
      ->type_name("DTYPE");
  command.add_option("--exchange", options.exchange, "Send gradients after or during backward")
      ->check(one_of({"after", "during"}))
      ->capture_default_str()
      ->type_name("WHEN");
  command
      .add_option("--sequence-parallel", options.sequence_parallel,
                  "Share each sequence among N processes [as set]")
      ->check(at_least(1))
      ->type_name("N");
}

}  // namespace

void add_plan_command(Command app) {
  Command command = add_command(app, "plan", "Predict memory, time and efficiency on a cluster");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("config", options->config, "Preset, config.json, model, or settings")
      ->required()
      ->type_name("NAME|FILE|DIR");
  add_cluster_options(command, *options);
  add_run_options(command, *options);
  add_json_option(command, options->json);
  command->footer("docs/scaling.md has the formulas, and how they compare with measured runs.");
  command->callback([options] { plan(*options); });
}

}  // namespace heed::cli
