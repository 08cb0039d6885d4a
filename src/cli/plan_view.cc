#include "cli/plan_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/terminal/bar.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/bench/work_cost.h"

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
  if (report.least_nodes) {
    table.add({"nodes for the memory", std::to_string(*report.least_nodes), ink.quiet("at least")});
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

}  // namespace

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

}  // namespace heed::cli
