#include "engine/plan/plan_report.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "engine/bench/work_cost.h"
#include "engine/loaded_model.h"
#include "model/presets.h"
#include "train/settings.h"

namespace heed {
namespace {

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string scaled(double value, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, prefixes[prefix], unit);
}

std::string memory_sentence(const PlanReport& report) {
  const ScalingPlan& plan = report.plan;
  const double share = plan.cluster.memory_per_node / real(plan.cluster.processes_per_node);
  const std::string problem =
      fmt::format("Memory limits: a process needs {} and has {}",
                  scaled(real(plan.memory.total()), "B"), scaled(share, "B"));
  if (report.min_nodes) {
    return fmt::format("{}; {} nodes of this kind would be enough.", problem, *report.min_nodes);
  }
  const int stage = plan.distribution.shard;
  if (stage < 3) {
    return fmt::format(
        "{}; with shard={} no number of nodes is enough, as every process has {} whole.", problem,
        stage, stage == 2 ? "the parameters" : "parameters and gradients");
  }
  return problem + "; no number of nodes is enough.";
}

// `improved`: on a cluster with ten times what limits.
std::string link_sentence(const ScalingPlan& plan, const ScalingPlan& improved, const char* what,
                          const std::string& waits_for, const char* better) {
  return fmt::format("{} {} of each step waits for {}; {} raise the efficiency from {} to {}.",
                     what, percent_text(plan.step.exposed() / plan.step.total()), waits_for, better,
                     percent_text(plan.efficiency), percent_text(improved.efficiency));
}

std::string limit_sentence(const PlanRequest& request, const PlanReport& report) {
  const ScalingPlan& plan = report.plan;
  const PlannedStep& step = plan.step;
  Cluster better = request.cluster;
  const auto improved = [&] {
    return plan_scaling(plan.settings, better, request.distribution, request.rates);
  };
  switch (plan.limit) {
    case PlanLimit::memory: return memory_sentence(report);
    case PlanLimit::batch:
      return fmt::format(
          "The batch limits: {} sequences do not divide evenly among {} processes, and the rest "
          "wait "
          "for those that compute {}; a batch that is a multiple of the processes would not wait.",
          plan.settings.batch_size, plan.cluster.processes(), plan.own_sequences);
    case PlanLimit::bandwidth: {
      better.bandwidth *= 10;
      const double bytes = step.gradients.bytes + step.parameters.bytes + step.ring.bytes;
      return link_sentence(plan, improved(), "The links limit:",
                           "the " + scaled(bytes, "B") + " that a process sends and receives",
                           "links ten times as fast would");
    }
    case PlanLimit::latency:
      better.latency /= 10;
      return link_sentence(plan, improved(), "Latency limits:", "messages that follow each other",
                           "a tenth of the latency would");
    case PlanLimit::compute:
      return fmt::format(
          "Computing limits: {} of each step computes, at {} in all; more or faster cores shorten "
          "it.",
          percent_text(step.compute() / step.total()), scaled(plan.flops_per_second(), "FLOP/s"));
  }
  return "";
}

OrderedJson exchange_json(const PlannedExchange& exchange) {
  return {{"bytes", exchange.bytes},
          {"transfer_seconds", exchange.transfer},
          {"latency_seconds", exchange.latency},
          {"hidden_seconds", exchange.hidden},
          {"exposed_seconds", exchange.exposed()}};
}

OrderedJson memory_json(const ScalingPlan& plan) {
  const PlannedMemory& memory = plan.memory;
  return {{"parameters", memory.parameters}, {"gradients", memory.gradients},
          {"moments", memory.moments},       {"activations", memory.activations},
          {"working", memory.working},       {"exchange", memory.exchange},
          {"total", memory.total()},         {"fits", plan.fits}};
}

OrderedJson step_json(const PlannedStep& step) {
  return {{"forward", step.forward},
          {"backward", step.backward},
          {"update", step.update},
          {"gradients", exchange_json(step.gradients)},
          {"parameters", exchange_json(step.parameters)},
          {"ring", exchange_json(step.ring)},
          {"agreement", step.agreement},
          {"compute", step.compute()},
          {"hidden", step.hidden()},
          {"exposed", step.exposed()},
          {"total", step.total()}};
}

OrderedJson cluster_json(const Cluster& cluster) {
  return {{"nodes", cluster.nodes},
          {"processes_per_node", cluster.processes_per_node},
          {"processes", cluster.processes()},
          {"cores_per_node", cluster.cores_per_node},
          {"memory_per_node", cluster.memory_per_node},
          {"bandwidth", cluster.bandwidth},
          {"latency", cluster.latency},
          {"price_per_node_hour", cluster.price_per_node_hour}};
}

OrderedJson run_json(const ScalingPlan& plan) {
  const TrainSettings& settings = plan.settings;
  const Distribution& how = plan.distribution;
  return {
      {"sequences_per_step", plan.sequences_per_step},
      {"batch_size", settings.batch_size},
      {"accumulation", settings.accumulation},
      {"own_sequences", plan.own_sequences},
      {"context", settings.sequence()},
      {"tokens_per_step", plan.tokens_per_step},
      {"precision", settings.precision == kernels::Precision::bf16 ? "bf16" : "f32"},
      {"recompute", settings.recompute},
      {"shard", how.shard},
      {"wire", how.wire == Distribution::Wire::bf16 ? "bf16" : "f32"},
      {"exchange", how.exchange == Distribution::Exchange::during_backward ? "during" : "after"},
      {"sequence_parallel", how.sequence_parallel}};
}

// What tells a model's config.json from settings of a run.
bool is_model_config(const Json& document) {
  return document.is_object() && (document.contains("model_type") || document.contains("n_layer") ||
                                  document.contains("architectures"));
}

TrainSettings named_settings(const std::string& name_or_path) {
  if (is_model_preset(name_or_path) || is_run_preset(name_or_path))
    return train_preset(name_or_path);
  TrainSettings settings;
  settings.precision.reset();
  if (name_or_path.ends_with(".json") && std::filesystem::exists(name_or_path)) {
    constexpr std::int64_t largest = std::int64_t{1} << 24;
    const Json document = parse_json(read_text_file(name_or_path, largest), name_or_path);
    if (!is_model_config(document)) {
      apply_settings(settings, document, name_or_path);
      return settings;
    }
  }
  settings.model = find_stack_config(name_or_path);
  return settings;
}

}  // namespace

PlanReport make_plan_report(const PlanRequest& request) {
  const auto& [name, settings, cluster, distribution, rates, tokens] = request;
  PlanReport report{.name = name,
                    .plan = plan_scaling(settings, cluster, distribution, rates),
                    .rates = rates,
                    .min_nodes = min_nodes(settings, cluster, distribution),
                    .sweep = sweep_nodes(settings, cluster, distribution, rates)};
  report.bill = training_bill(report.plan, tokens);
  report.limit = limit_sentence(request, report);
  return report;
}

OrderedJson plan_report_json(const PlanReport& report) {
  const ScalingPlan& plan = report.plan;
  const TrainingRates& rates = report.rates;
  const TrainingBill& bill = report.bill;
  OrderedJson sweep = OrderedJson::array();
  for (const ScalingPlan& each : report.sweep) {
    sweep.push_back({{"nodes", each.cluster.nodes},
                     {"step_seconds", each.step.total()},
                     {"tokens_per_s", each.tokens_per_second()},
                     {"efficiency", each.efficiency},
                     {"days", training_bill(each, bill.tokens).days()},
                     {"memory", each.memory.total()},
                     {"fits", each.fits},
                     {"limit", plan_limit_name(each.limit)}});
  }
  return {{"name", report.name},
          {"parameters", plan.parameters},
          {"flops_per_token", plan.flops_per_token},
          {"cluster", cluster_json(plan.cluster)},
          {"run", run_json(plan)},
          {"rates",
           {{"block_forward", rates.block_forward},
            {"block_backward", rates.block_backward},
            {"ends", rates.ends},
            {"memory", rates.memory},
            {"copies", rates.copy_rate()}}},
          {"memory", memory_json(plan)},
          {"min_nodes", report.min_nodes ? OrderedJson(*report.min_nodes) : OrderedJson()},
          {"step_seconds", step_json(plan.step)},
          {"alone_seconds", plan.alone_seconds},
          {"tokens_per_s", plan.tokens_per_second()},
          {"flops_per_s", plan.flops_per_second()},
          {"efficiency", plan.efficiency},
          {"limit", plan_limit_name(plan.limit)},
          {"sentence", report.limit},
          {"training",
           {{"tokens", bill.tokens},
            {"steps", bill.steps},
            {"operations", bill.operations},
            {"seconds", bill.seconds},
            {"days", bill.days()},
            {"node_hours", bill.node_hours},
            {"price", bill.price}}},
          {"sweep", sweep}};
}

TrainSettings planned_settings(const std::string& name_or_path) {
  TrainSettings settings = named_settings(name_or_path);
  // No text is read, and vocabulary_size may become smaller than the token that ends one.
  settings.model.end_of_text = -1;
  return settings;
}

double usual_tokens(const std::string& name, const TrainSettings& settings) {
  constexpr double gpt3_tokens = 3e11;
  if (name.starts_with("gpt3")) return gpt3_tokens;
  return real(settings.steps) * real(settings.tokens_per_step());
}

}  // namespace heed
