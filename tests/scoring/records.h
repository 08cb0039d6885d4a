// What sacreBLEU made of texts (oracle/records.py), compared with what heed makes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "scoring/bleu.h"
#include "scoring/bootstrap.h"
#include "scoring/characters.h"
#include "scoring/chrf.h"

namespace heed::scoring {

using Lines = std::vector<std::string>;

// The same integers, and a few operations in double.
inline constexpr double relative_error = 1e-12;
// sacreBLEU scores samples in float: some thirty roundings of 2^-24.
inline constexpr double relative_error_of_samples = 2e-6;

inline void expect_close(double value, const Json& expected, double tolerance,
                         const std::string& what) {
  const auto wanted = expected.get<double>();
  EXPECT_LE(std::abs(value - wanted), tolerance * std::max(1.0, std::abs(wanted)))
      << what << ": " << value << ", sacreBLEU: " << wanted;
}

inline void expect_same_words(const Json& record) {
  const auto text = record.at("text").get<std::string>();
  EXPECT_EQ(lower_case(to_characters(text)), to_characters(record.at("lower").get<std::string>()))
      << text;
  for (const std::string& name : bleu_tokenization_names()) {
    std::vector<std::u32string> expected;
    for (const Json& word : record.at(name)) {
      expected.push_back(to_characters(word.get<std::string>()));
    }
    EXPECT_EQ(bleu_words(to_characters(text), bleu_tokenization_from_name(name)), expected)
        << name << " of '" << text << "', expected " << record.at(name);
  }
}

inline BleuOptions bleu_options_of(const Json& options) {
  return {.tokenization = bleu_tokenization_from_name(options.at("tokenize").get<std::string>()),
          .lowercase = options.value("lowercase", false),
          .effective_order = options.value("effective_order", false)};
}

inline std::unique_ptr<Metric> metric_of(const Json& record) {
  const Json& options = record.at("options");
  if (record.at("kind") == "bleu") return std::make_unique<Bleu>(bleu_options_of(options));
  return std::make_unique<Chrf>(ChrfOptions{.word_order = options.value("word_order", 0),
                                            .beta = options.value("beta", 2),
                                            .lowercase = options.value("lowercase", false)});
}

// The version is each program's own.
inline std::string without_version(const std::string& signature) {
  return signature.substr(0, signature.rfind("|version:"));
}

inline void expect_same_bleu(const BleuScore& score, const Json& expected,
                             const std::string& what) {
  expect_close(score.score, expected.at("score"), relative_error, what);
  expect_close(score.brevity_penalty, expected.at("brevity_penalty"), relative_error, what);
  EXPECT_EQ(score.statistics.hypothesis_length, expected.at("hypothesis_length")) << what;
  EXPECT_EQ(score.statistics.reference_length, expected.at("reference_length")) << what;
  for (std::size_t n = 0; n < bleu_orders; ++n) {
    EXPECT_EQ(score.statistics.correct[n], expected.at("correct")[n]) << what;
    EXPECT_EQ(score.statistics.total[n], expected.at("total")[n]) << what;
    expect_close(score.precisions[n], expected.at("precisions")[n], relative_error, what);
  }
}

inline void expect_same_bootstrap(const Metric& metric,
                                  const std::vector<SentenceStatistics>& systems,
                                  const Json& expected, const SignatureContext& corpus) {
  const auto samples = expected.at("samples").get<std::int64_t>();
  const BootstrapOptions options{.samples = samples};
  SignatureContext context = corpus;
  context.bootstrap_samples = samples;
  context.seed = options.seed;
  const std::string what = metric.signature(context);
  EXPECT_EQ(expected.at("signature"), without_version(what));
  const std::vector<SystemScore> scores = paired_bootstrap(metric, systems, options);
  for (std::size_t i = 0; i < systems.size(); ++i) {
    const Json& wanted = expected.at("systems")[i];
    expect_close(scores[i].interval.mean, wanted.at("mean"), relative_error_of_samples, what);
    expect_close(scores[i].interval.half_width, wanted.at("half_width"), relative_error_of_samples,
                 what);
    ASSERT_EQ(scores[i].p_value.has_value(), !wanted.at("p_value").is_null()) << what;
    if (!scores[i].p_value) continue;
    // A sample whose difference is the corpus's to seven digits may fall on either side.
    EXPECT_LE(std::abs(*scores[i].p_value - wanted.at("p_value").get<double>()),
              1.5 / static_cast<double>(samples))
        << what << ": " << *scores[i].p_value << ", sacreBLEU: " << wanted.at("p_value");
  }
}

inline void expect_same_scores(const Json& corpus, const Json& record) {
  auto references = corpus.at("references").get<std::vector<Lines>>();
  references.resize(record.at("references").get<std::size_t>());
  const std::unique_ptr<Metric> metric = metric_of(record);
  const SignatureContext context{.references = std::ssize(references)};
  const std::string what = corpus.at("name").get<std::string>() + ", " + metric->signature(context);
  EXPECT_EQ(record.at("name"), metric->name()) << what;
  EXPECT_EQ(record.at("signature"), without_version(metric->signature(context)));

  std::vector<SentenceStatistics> systems;
  for (const Json& lines : corpus.at("systems")) {
    const auto hypotheses = lines.get<Lines>();
    systems.push_back(metric->statistics({hypotheses, references}));
    const Json& expected = record.at("systems")[systems.size() - 1];
    expect_close(metric->score(systems.back().sum()), expected.at("score"), relative_error, what);
    if (record.at("kind") != "bleu") continue;
    expect_same_bleu(corpus_bleu(hypotheses, references, bleu_options_of(record.at("options"))),
                     expected, what);
  }
  const Json& sentences = record.at("sentences");
  ASSERT_EQ(systems[0].sentences(), std::ssize(sentences));
  for (std::int64_t i = 0; i < systems[0].sentences(); ++i) {
    expect_close(metric->score(systems[0].of(i)), sentences[static_cast<std::size_t>(i)],
                 relative_error, what + ", sentence " + std::to_string(i));
  }
  if (record.contains("bootstrap")) {
    expect_same_bootstrap(*metric, systems, record.at("bootstrap"), context);
  }
}

inline void expect_same_as_sacrebleu(const Json& records) {
  ASSERT_FALSE(records.at("tokenized").empty());
  for (const Json& record : records.at("tokenized")) expect_same_words(record);
  for (const Json& corpus : records.at("corpora")) {
    for (const Json& record : corpus.at("metrics")) expect_same_scores(corpus, record);
  }
}

}  // namespace heed::scoring
