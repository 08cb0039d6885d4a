#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/threads.h"
#include "base/topology.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

using kernels::PeakLoop;

struct LoopName {
  PeakLoop loop;
  const char* people;
  const char* json;
};
constexpr LoopName loop_names[] = {
    {PeakLoop::multiply_add_f32, "f32 multiply-adds", "f32_multiply_add"},
    {PeakLoop::dot_product_bf16, "bf16 dot products", "bf16_dot_product"},
    {PeakLoop::tile_product_bf16, "bf16 tile products", "bf16_tile_product"},
    {PeakLoop::read, "memory reads", "read"}};

const LoopName& name_of(PeakLoop loop) {
  return *std::ranges::find(loop_names, loop, &LoopName::loop);
}

// --- For people.

std::string sub_second_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string spread(const BenchmarkRow& row) {
  return sub_second_time(row.min_seconds()) + " … " + sub_second_time(row.max_seconds());
}

// Three digits at least.
std::string amount(double number) {
  if (number < 100) return fmt::format("{:.{}f}", number, number < 10 ? 2 : 1);
  return grouped(std::llround(number));
}

std::string rate(PeakLoop loop, double per_second) {
  return amount(per_second / 1e9) + (loop == PeakLoop::read ? " GB/s" : " GFLOP/s");
}

std::string title_of(BenchmarkSuite suite) {
  switch (suite) {
    case BenchmarkSuite::peak: return "Machine peak";
    case BenchmarkSuite::train: return "Training";
    case BenchmarkSuite::prompt: return "Prompt";
    case BenchmarkSuite::decode: return "Decoding";
    case BenchmarkSuite::attention: return "Causal attention";
    case BenchmarkSuite::tokenizer: return "Tokenizing";
    case BenchmarkSuite::translate: return "Translation";
  }
  return {};
}

// "4 × 1,024 tokens a step"
std::string work_text(const BenchmarkReport& report) {
  const std::string batch = grouped(report.batch.value_or(0));
  const std::string context = grouped(report.context.value_or(0));
  switch (report.suite) {
    case BenchmarkSuite::train:
    case BenchmarkSuite::prompt: return fmt::format("{} × {} tokens", batch, context);
    case BenchmarkSuite::decode:
      return fmt::format("{} × {} tokens after {}", batch, grouped(report.count.value_or(0)),
                         context);
    case BenchmarkSuite::translate:
      return fmt::format("{} pairs of {} tokens each", batch, context);
    case BenchmarkSuite::attention: return fmt::format("{} × {} positions", batch, context);
    default: return {};
  }
}

std::string subtitle(const BenchmarkReport& report) {
  std::vector<std::string> parts;
  if (!report.model.empty()) parts.push_back(fit(report.model, 24));
  if (report.parameters > 0) {
    parts.push_back(short_count(static_cast<double>(report.parameters)) + " parameters");
  }
  if (const std::string work = work_text(report); !work.empty()) parts.push_back(work);
  if (report.suite != BenchmarkSuite::tokenizer && !report.rows.empty()) {
    parts.emplace_back(kernels::weight_format_name(report.rows.front().dtype));
  }
  if (report.cache_type.value_or(kernels::CacheType::f32) != kernels::CacheType::f32) {
    parts.push_back(fmt::format("cache {}", kernels::cache_type_name(*report.cache_type)));
  }
  const int threads = thread_count();
  parts.push_back(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "64 processors, 32 cores, 2 sockets, 2 memory nodes, threads pinned"
std::string machine_text() {
  const Topology topology = read_topology(allowed_processors());
  const auto counted = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::vector<std::string> parts{
      counted(std::ssize(topology.processors), "processor"), counted(topology.cores(), "core"),
      counted(topology.packages(), "socket"), counted(topology.memory_nodes(), "memory node")};
  if (topology.quota) parts.push_back(fmt::format("a quota of {:.3g}", *topology.quota));
  parts.emplace_back(threads_are_pinned() ? "threads pinned" : "threads not pinned");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_ceilings(const BenchmarkReport& report, const Ink& ink) {
  if (report.ceilings.empty()) return;  // of a device
  Table table({{"ceiling", Align::left},
               {"best", Align::right},
               {"median", Align::right},
               {"slowest", Align::right}});
  for (const auto& [loop, measurement] : report.ceilings) {
    // Rates of the loop's runs, by the statistics that rows have.
    const BenchmarkRow row{.seconds = measurement.seconds};
    const auto at = [loop = loop, work = measurement.work](double seconds) {
      return rate(loop, work / seconds);
    };
    table.add({name_of(loop).people, ink.bold(at(row.min_seconds())),
               ink.quiet(at(row.median_seconds())), ink.quiet(at(row.max_seconds()))});
  }
  print(table.text(ink));
}

// What a row does a second, of what limits it.
std::string rate_of(const BenchmarkRow& row) {
  if (!row.limit) return fmt::format("{} MB/s", amount(row.per_second(row.bytes / 1e6)));
  const bool reading = *row.limit == kernels::PeakLoop::read;
  return rate(*row.limit, row.per_second(reading ? row.bytes : row.flops));
}

// Of work that products or reading may bound: both shares, and a bar of the larger.
void print_rows_of_both(const BenchmarkReport& report, const Ink& ink) {
  Table table({{"work", Align::left},
               {"median", Align::right},
               {"fastest … slowest", Align::right},
               {"tokens/s", Align::right},
               {"of products", Align::right},
               {"of reads", Align::right},
               {"", Align::left}});
  for (const BenchmarkRow& row : report.rows) {
    const auto share = [&](PeakLoop loop) {
      const std::optional<double> of = report.of(row, loop);
      const std::string text = of ? percent(*of) : "";
      return row.limit == loop ? ink.bold(text) : ink.quiet(text);
    };
    table.add({row.name, sub_second_time(row.median_seconds()), ink.quiet(spread(row)),
               ink.bold(amount(row.per_second(row.tokens))), share(*row.product_limit),
               share(PeakLoop::read),
               ink.paint(bar(std::min(report.of_peak(row).value_or(0), 1.0), 8), colour::blue)});
  }
  print(table.text(ink));
}

void print_rows(const BenchmarkReport& report, const Ink& ink) {
  const bool has_peaks = report.rows.front().limit && !report.ceilings.empty();
  Table table({{"work", Align::left},
               {"median", Align::right},
               {"fastest … slowest", Align::right},
               {"tokens/s", Align::right},
               {"rate", Align::right},
               {has_peaks ? "of peak" : "", Align::right},
               {"", Align::left},
               {has_peaks ? "sustained" : "", Align::right}});
  for (const BenchmarkRow& row : report.rows) {
    const std::optional<double> share = report.of_peak(row);
    const std::optional<double> sustained = report.of_sustained_peak(row);
    table.add({row.name, sub_second_time(row.median_seconds()), ink.quiet(spread(row)),
               row.tokens > 0 ? ink.bold(amount(row.per_second(row.tokens))) : "", rate_of(row),
               share ? ink.bold(percent(*share)) : "",
               share ? ink.paint(bar(std::min(*share, 1.0), 8), colour::blue) : "",
               sustained ? percent(*sustained) : ""});
  }
  print(table.text(ink));
}

void print_notes(const BenchmarkReport& report, const Ink& ink) {
  std::string notes;
  std::optional<kernels::PeakLoop> named;
  for (const BenchmarkRow& row : report.rows) {
    if (!row.limit || row.limit == named) continue;
    const BenchmarkCeiling* const limit = report.ceiling(*row.limit);
    if (limit == nullptr) continue;  // a device's, which is not measured
    notes +=
        fmt::format("  {}: of the peak rate of {}, {}\n", named ? row.name : "of peak",
                    name_of(*row.limit).people, rate(*row.limit, limit->measurement.best_rate()));
    named = row.limit;
  }
  const BenchmarkRow& first = report.rows.front();
  if (!first.product_limit && report.of_sustained_peak(first)) {
    notes +=
        "  sustained: of the best of that loop's runs which took about as long, up to a second\n";
  }
  for (const BenchmarkRow& each : report.rows) {
    if (const auto share = report.of_dot_products(each)) {
      notes += fmt::format("  {}: {} of the peak rate of bf16 dot products\n", each.name,
                           percent(*share));
    }
  }
  if (const std::vector<double> times = report.rows.front().times_of_other(); !times.empty()) {
    notes += fmt::format(
        "  {}: {} times the {} tokens/s of the other program, {} … {} repeat by repeat\n",
        report.rows.front().name, amount(median(times)),
        amount(median(report.rows.front().against)), amount(std::ranges::min(times)),
        amount(std::ranges::max(times)));
  }
  notes += fmt::format("  {}, peak memory {}\n", report.instruction_set,
                       short_bytes(static_cast<double>(report.rows.back().peak_resident_bytes)));
  print(ink.quiet(notes));
}

// --- For programs.

// Zero stands for what does not apply.
OrderedJson number_or_null(double number) { return number > 0 ? json_number(number) : nullptr; }

OrderedJson optional_count(const std::optional<std::int64_t>& count) {
  return count ? OrderedJson(*count) : OrderedJson(nullptr);
}

OrderedJson optional_number(const std::optional<double>& number) {
  return number ? json_number(*number) : nullptr;
}

OrderedJson row_json(const BenchmarkReport& report, const BenchmarkRow& row) {
  OrderedJson json;
  json["suite"] = benchmark_suite_name(report.suite);
  json["name"] = row.name;
  json["model"] = report.model;
  json["parameters"] = report.parameters;
  json["batch"] = optional_count(report.batch);
  json["context"] = optional_count(report.context);
  json["count"] = optional_count(report.count);
  json["instruction_set"] = report.instruction_set;
  json["dtype"] = kernels::weight_format_name(row.dtype);
  json["cache_type"] = report.cache_type ? OrderedJson(kernels::cache_type_name(*report.cache_type))
                                         : OrderedJson(nullptr);
  json["threads"] = row.threads;
  json["repeats"] = row.seconds.size();
  json["seconds"] = json_number(row.median_seconds());
  json["seconds_min"] = json_number(row.min_seconds());
  json["seconds_max"] = json_number(row.max_seconds());
  if (row.tokens > 0) json["tokens_per_s"] = json_number(row.per_second(row.tokens));
  json["flops"] = number_or_null(row.flops);
  json["bytes"] = number_or_null(row.bytes);
  json["flops_per_s"] = number_or_null(row.per_second(row.flops));
  json["bytes_per_s"] = number_or_null(row.per_second(row.bytes));
  json["of_peak"] = optional_number(report.of_peak(row));
  json["of_sustained_peak"] = optional_number(report.of_sustained_peak(row));
  json["peak"] = row.limit ? OrderedJson(name_of(*row.limit).json) : OrderedJson(nullptr);
  if (row.product_limit) {
    json["of_products"] = optional_number(report.of(row, *row.product_limit));
    json["of_read"] = optional_number(report.of(row, PeakLoop::read));
  }
  json["of_bf16_dot_product"] = optional_number(report.of_dot_products(row));
  json["peak_rss_bytes"] = row.peak_resident_bytes;
  if (const std::vector<double> times = row.times_of_other(); !times.empty()) {
    json["against"] = {{"tokens_per_s", json_number(median(row.against))},
                       {"times", json_number(median(times))},
                       {"times_min", json_number(std::ranges::min(times))},
                       {"times_max", json_number(std::ranges::max(times))}};
  }
  return json;
}

OrderedJson machine_json() {
  const Topology topology = read_topology(allowed_processors());
  return {{"processors", topology.processors.size()}, {"cores", topology.cores()},
          {"sockets", topology.packages()},           {"memory_nodes", topology.memory_nodes()},
          {"quota", optional_number(topology.quota)}, {"threads_pinned", threads_are_pinned()}};
}

// The ceilings as rows of the suite that measures nothing else: their limits are themselves.
std::vector<BenchmarkRow> ceiling_rows(const BenchmarkReport& report) {
  std::vector<BenchmarkRow> rows;
  for (const auto& [loop, measurement] : report.ceilings) {
    const bool reads = loop == PeakLoop::read;
    const bool f32 = reads || loop == PeakLoop::multiply_add_f32;
    rows.push_back({.name = name_of(loop).json,
                    .dtype = f32 ? kernels::WeightFormat::f32 : kernels::WeightFormat::bf16,
                    .threads = thread_count(),
                    .seconds = measurement.seconds,
                    .flops = reads ? 0 : measurement.work,
                    .bytes = reads ? measurement.work : 0,
                    .limit = loop});
  }
  return rows;
}

}  // namespace

void print_benchmark(const BenchmarkReport& report) {
  const Ink ink(standard_output());
  print("\n" + ink.title(title_of(report.suite)) + ink.quiet("  " + subtitle(report)) + "\n\n");
  print_ceilings(report, ink);
  if (report.rows.empty()) {
    return print(ink.quiet(fmt::format("\n  {}, {}\n", report.instruction_set, machine_text())));
  }
  print("\n");
  const bool has_both = report.rows.front().product_limit.has_value();
  has_both ? print_rows_of_both(report, ink) : print_rows(report, ink);
  print("\n");
  print_notes(report, ink);
}

OrderedJson benchmark_json(const std::vector<BenchmarkReport>& reports) {
  const BenchmarkReport& first = reports.front();
  OrderedJson ceilings;
  for (const LoopName& name : loop_names) {
    const BenchmarkCeiling* ceiling = first.ceiling(name.loop);
    const char* unit = name.loop == PeakLoop::read ? "_bytes_per_s" : "_flops_per_s";
    ceilings[std::string(name.json) + unit] =
        ceiling != nullptr ? json_number(ceiling->measurement.best_rate()) : nullptr;
  }
  OrderedJson rows = OrderedJson::array();
  for (const BenchmarkReport& report : reports) {
    const bool peak = report.suite == BenchmarkSuite::peak;
    for (const BenchmarkRow& row : peak ? ceiling_rows(report) : report.rows) {
      rows.push_back(row_json(report, row));
    }
  }
  return {{"suite", benchmark_suite_name(first.suite)},
          {"model", first.model},
          {"parameters", first.parameters},
          {"batch", optional_count(first.batch)},
          {"context", optional_count(first.context)},
          {"count", optional_count(first.count)},
          {"instruction_set", first.instruction_set},
          {"machine", machine_json()},
          {"ceilings", std::move(ceilings)},
          {"rows", std::move(rows)}};
}

}  // namespace heed::cli
