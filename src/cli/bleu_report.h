// The result of heed bleu as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "scoring/bleu.h"
#include "scoring/bootstrap.h"

namespace heed::cli {

struct MetricReport {
  std::string name;
  std::string signature;
  std::vector<scoring::SystemScore> systems;   // intervals only where samples were drawn
  std::vector<scoring::BleuScore> details;     // of each system; none of other metrics than BLEU
  std::vector<std::vector<double>> sentences;  // of each system, if asked for
};

struct BleuReport {
  std::int64_t sentences = 0;
  std::int64_t references = 0;
  std::optional<std::int64_t> samples;  // of the bootstrap
  bool compares = false;                // p-values against the first system
  std::vector<std::string> systems;     // their names
  std::vector<MetricReport> metrics;
};

std::string bleu_report_text(const BleuReport& report);

// One line for each sentence: a score of each metric, separated by tabs. For one system.
std::string bleu_sentence_lines(const BleuReport& report);

OrderedJson bleu_report_json(const BleuReport& report);

}  // namespace heed::cli
