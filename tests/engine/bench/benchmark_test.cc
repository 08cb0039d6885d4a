#include "engine/bench/benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/expect_error.h"
#include "base/temporary_directory.h"
#include "engine/bench/measurer.h"
#include "engine/bench/work_cost.h"
#include "kernels/instruction_sets.h"
#include "model/presets.h"
#include "support/small_model.h"
#include "support/small_translator_files.h"
#include "train/settings.h"

namespace heed {
namespace {

using kernels::PeakLoop;
using kernels::WeightFormat;

// GPT-2 small: N = 124,439,808 of which V·C = 38,597,376 and P·C = 786,432; L = 12, A = 768.
constexpr double parameters = 124439808, projection = 38597376, positions_table = 786432;
constexpr double inside = parameters - projection - positions_table;

const StackSpecification& gpt2() { return model_preset("gpt2").config; }

TEST(BenchmarkCost, CountsTraining) {
  const WorkCost cost = training_step_cost(gpt2(), 4, 1024);
  EXPECT_DOUBLE_EQ(cost.flops, 4096 * (6 * parameters + 6.0 * 12 * 768 * 1024));
  EXPECT_DOUBLE_EQ(cost.bytes, 40 * parameters);
}

TEST(BenchmarkCost, CountsAPrompt) {
  const WorkCost cost = prompt_cost(gpt2(), {}, 2, 512);
  EXPECT_EQ(projection_flops(gpt2()), 2.0 * 50257 * 768);
  EXPECT_DOUBLE_EQ(cost.flops, 1024 * (2 * inside + 2.0 * 12 * 768 * 512));
  EXPECT_DOUBLE_EQ(cost.bytes, 4 * (parameters - positions_table) + 1024.0 * 2 * 12 * 768 * 4);
}

TEST(BenchmarkCost, CountsDecoding) {
  const WorkCost first = decoding_cost(gpt2(), {}, 1, 0);
  EXPECT_DOUBLE_EQ(first.flops, 2 * (inside + projection) + 4.0 * 12 * 768);
  EXPECT_DOUBLE_EQ(first.bytes, 4 * (parameters - positions_table) + 2.0 * 12 * 768 * 4);
  // Sequences share the weights; each has keys and values of its own.
  const WorkCost later = decoding_cost(gpt2(), {}, 3, 99);
  EXPECT_DOUBLE_EQ(later.flops, 3 * (2 * (inside + projection) + 4.0 * 12 * 768 * 100));
  EXPECT_DOUBLE_EQ(later.bytes, 4 * (parameters - positions_table) + 3.0 * 100 * 2 * 12 * 768 * 4);
  // In int8, each of 12 heads has a scale of four bytes beside its 64 numbers.
  const WorkCost shorter = decoding_cost(gpt2(), {.cache = kernels::CacheType::int8}, 3, 99);
  EXPECT_DOUBLE_EQ(shorter.bytes,
                   4 * (parameters - positions_table) + 3.0 * 100 * 2 * 12 * 12 * 68);
}

TEST(BenchmarkCost, CountsTheBytesOfFormats) {
  const double matrices = 12.0 * 12 * 768 * 768 + projection;
  const double rest = 4 * (inside - 12.0 * 12 * 768 * 768);  // norms and biases
  EXPECT_DOUBLE_EQ(weight_bytes(gpt2(), WeightFormat::bf16), 2 * matrices + rest);
  EXPECT_DOUBLE_EQ(weight_bytes(gpt2(), WeightFormat::int8), matrices * 34 / 32 + rest);
  EXPECT_DOUBLE_EQ(weight_bytes(gpt2(), WeightFormat::int4), matrices * 18 / 32 + rest);
  StackSpecification untied = gpt2();
  untied.tied_unembedding = false;  // the embedding is no longer read but for a row
  EXPECT_DOUBLE_EQ(weight_bytes(untied, WeightFormat::f32),
                   weight_bytes(gpt2(), WeightFormat::f32));
}

TEST(BenchmarkCost, CountsWhatTheMaskLeaves) {
  const AttentionShape shape{.batch = 2, .positions = 5, .heads = 3, .head_size = 8};
  double pairs = 0;
  for (std::int64_t query = 0; query < 5; ++query) {
    for (std::int64_t key = 0; key <= query; ++key) pairs += 2 * 3;
  }
  EXPECT_DOUBLE_EQ(attention_forward_cost(shape).flops, 4 * 8 * pairs);
  EXPECT_DOUBLE_EQ(attention_backward_cost(shape).flops, 10 * 8 * pairs);
  EXPECT_DOUBLE_EQ(attention_forward_cost(shape).bytes, 4.0 * 4 * 2 * 5 * 3 * 8);
  EXPECT_DOUBLE_EQ(attention_backward_cost(shape).bytes, 8.0 * 4 * 2 * 5 * 3 * 8);
}

// Two layers of two heads, C = 8, F = 16, V = 10. Matrices and vectors (norms and biases) of the
// encoder: 1,024 and 192; of the projections of its result: 256 and 32; of the rest of the decoder:
// 1,280 and 256; the embedding, which is the unembedding too: 80.
Architecture toy_pair() {
  TrainSettings settings{.model = make_gpt_config(2, 2, 8, 32, 10)};
  settings.task = Task::pairs;
  settings.model.block.attention.positions = PositionKind::sinusoidal;
  settings.model.block.feed_forward.width = 16;
  return pair_architecture(settings);
}

TEST(BenchmarkPairCost, CountsATrainingStep) {
  // B = 3, S = 5, T = 4: encoder's attention sees 5 positions, the decoder's 2 on average, and 5.
  const double encoder = 15 * (2.0 * (1024 + 192 + 256 + 32) + 4 * 2 * 8 * 5);
  const double decoder = 12 * (2.0 * (1280 + 256) + 2 * 10 * 8 + 4 * 2 * 8 * 2 + 4 * 2 * 8 * 5);
  const WorkCost cost = pair_step_cost(toy_pair(), {.pairs = 3, .sources = 5, .targets = 4});
  EXPECT_DOUBLE_EQ(cost.flops, 3 * (encoder + decoder));
  EXPECT_DOUBLE_EQ(cost.bytes, 40.0 * (80 + 1024 + 192 + 256 + 32 + 1280 + 256));
}

TEST(BenchmarkPairCost, CountsEncodingAndDecoding) {
  const PairShape shape{.pairs = 3, .sources = 5, .targets = 4};
  const double encoder = 15 * (2.0 * (1024 + 192 + 256 + 32) + 4 * 2 * 8 * 5);
  const double cached = 15 * 2.0 * 2 * 8 * 4;  // keys and values of the sources, both layers
  const WorkCost encoding = encoding_cost(toy_pair(), {}, shape);
  EXPECT_DOUBLE_EQ(encoding.flops, encoder);
  EXPECT_DOUBLE_EQ(encoding.bytes, 4.0 * (1024 + 192 + 256 + 32) + cached);
  EXPECT_DOUBLE_EQ(encoding_cost(toy_pair(), {.weights = WeightFormat::bf16}, shape).bytes,
                   2.0 * (1024 + 256) + 4.0 * (192 + 32) + cached);
  // The first of four steps is of 3 hypotheses, the others are of 6.
  const double token = 2.0 * (1280 + 256) + 2 * 10 * 8 + 4 * 2 * 8 * 5;
  const WorkCost beams = translation_cost(toy_pair(), {}, shape, 2);
  EXPECT_DOUBLE_EQ(beams.flops, encoder + (3 + 3 * 6) * token + 4 * 2 * 8 * (3 + 6 * (2 + 3 + 4)));
  EXPECT_DOUBLE_EQ(beams.bytes, encoding.bytes + 4 * (4.0 * (1280 + 256 + 80) + cached) +
                                    2 * 2 * 8 * 4 * (3 + 6 * (2 + 3 + 4)));
  const WorkCost greedy = translation_cost(toy_pair(), {}, shape, 1);
  EXPECT_DOUBLE_EQ(greedy.flops, encoder + 12 * token + 4 * 2 * 8 * 3 * (1 + 2 + 3 + 4));
}

TEST(BenchmarkReport, DividesMediansByTheBestOfTheCeiling) {
  BenchmarkReport report;
  report.ceilings = {{PeakLoop::dot_product_bf16, {.work = 100, .seconds = {2, 1, 4}}},
                     {PeakLoop::tile_product_bf16, {.work = 400, .seconds = {1}}},
                     {PeakLoop::read, {.work = 50, .seconds = {1}}}};
  BenchmarkRow row{.seconds = {5, 1, 2}, .flops = 100, .bytes = 20};
  EXPECT_EQ(row.median_seconds(), 2);
  EXPECT_EQ(row.min_seconds(), 1);
  EXPECT_EQ(row.max_seconds(), 5);
  EXPECT_EQ(report.of_peak(row), std::nullopt);
  row.limit = PeakLoop::tile_product_bf16;
  EXPECT_DOUBLE_EQ(*report.of_peak(row), 50.0 / 400);
  EXPECT_DOUBLE_EQ(*report.of_dot_products(row), 50.0 / 100);
  row.limit = PeakLoop::read;
  EXPECT_DOUBLE_EQ(*report.of_peak(row), 10.0 / 50);
  EXPECT_EQ(report.of_dot_products(row), std::nullopt);
  row.limit = PeakLoop::multiply_add_f32;  // not measured
  EXPECT_EQ(report.of_peak(row), std::nullopt);
  row.seconds = {4, 1, 2, 3};
  EXPECT_EQ(row.median_seconds(), 2.5);
}

TEST(BenchmarkReport, DividesByTheBestOverAsLongATime) {
  BenchmarkReport report;
  report.ceilings = {{PeakLoop::multiply_add_f32, {.work = 100, .seconds = {1}}}};
  BenchmarkRow row{.seconds = {5, 1, 2}, .flops = 100, .bytes = 20};
  row.sustained = {{PeakLoop::read, {.work = 60, .seconds = {3, 2}}},
                   {PeakLoop::multiply_add_f32, {.work = 300, .seconds = {6, 4, 5}}}};
  EXPECT_EQ(report.of_sustained_peak(row), std::nullopt);
  row.limit = PeakLoop::multiply_add_f32;
  EXPECT_DOUBLE_EQ(*report.of_peak(row), 50.0 / 100);
  EXPECT_DOUBLE_EQ(*report.of_sustained_peak(row), 50.0 / 75);
  row.limit = PeakLoop::read;
  EXPECT_DOUBLE_EQ(*report.of_sustained_peak(row), 10.0 / 30);
  row.limit = PeakLoop::dot_product_bf16;  // not measured
  EXPECT_EQ(report.of_sustained_peak(row), std::nullopt);
}

TEST(BenchmarkMeasurer, RunsLoopsForAsLongAsTheWorkTakes) {
  EXPECT_EQ(runs_as_long_as(0.25, 0.002), 125);
  EXPECT_EQ(runs_as_long_as(0.0001, 0.002), 1);
  EXPECT_EQ(runs_as_long_as(20, 0.01), 100);
}

TEST(BenchmarkReport, ComparesRepeatByRepeat) {
  const BenchmarkRow row{.seconds = {1, 2, 4}, .tokens = 80, .against = {40, 10, 5}};
  EXPECT_EQ(row.times_of_other(), (std::vector<double>{2, 4, 4}));
  EXPECT_TRUE((BenchmarkRow{.seconds = {1}}).times_of_other().empty());
}

TEST(Benchmark, NamesDtypes) {
  for (const char* name : {"f32", "bf16", "int8", "int4"}) {
    EXPECT_EQ(kernels::weight_format_name(kernels::parse_weight_format(name)), name);
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [] { kernels::parse_weight_format("f16"); }, "f16");
}

TEST(Benchmark, HoldsProductsAgainstTheUnitInUse) {
  EXPECT_EQ(product_limit(WeightFormat::f32), PeakLoop::multiply_add_f32);
  const std::string unit = kernels::current_instruction_set();
  const PeakLoop limit = product_limit(WeightFormat::bf16);
  EXPECT_EQ(limit == PeakLoop::tile_product_bf16, unit == "AMX_BF16");
  EXPECT_EQ(limit == PeakLoop::dot_product_bf16, unit == "AVX512_BF16" || unit == "NEON_BF16");
}

class BenchmarkTest : public testing::SmallModelTest {
 protected:
  // Two repeats of random weights of the small model's shape: context 128.
  static BenchmarkOptions options(BenchmarkSuite suite) {
    return {.suite = suite, .config = directory_->path().string(), .repeats = 2};
  }

  static void expect_measured(const BenchmarkReport& report, const BenchmarkRow& row) {
    EXPECT_EQ(row.seconds.size(), 2U) << row.name;
    EXPECT_GT(row.min_seconds(), 0) << row.name;
    EXPECT_GT(row.peak_resident_bytes, 0) << row.name;
    EXPECT_EQ(report.of_peak(row).has_value(), row.limit.has_value()) << row.name;
    if (!row.limit) return;
    // Thirty runs or eight before the rows, and five or two before each repeat.
    const auto runs = std::ssize(report.ceiling(*row.limit)->measurement.seconds);
    EXPECT_GE(runs, *row.limit == PeakLoop::read ? 8 + 2 * 2 : 30 + 2 * 5) << row.name;
    EXPECT_TRUE(report.of_sustained_peak(row).has_value()) << row.name;
    for (const BenchmarkCeiling& sustained : row.sustained) {
      EXPECT_EQ(std::ssize(sustained.measurement.seconds), 2) << row.name;
      EXPECT_GE(sustained.measurement.work, report.ceiling(sustained.loop)->measurement.work);
    }
  }
};

TEST_F(BenchmarkTest, MeasuresTraining) {
  BenchmarkOptions training = options(BenchmarkSuite::train);
  training.dtype = WeightFormat::bf16;
  training.batch = 2;
  training.context = 16;
  training.count = 3;
  const BenchmarkReport report = run_benchmark(training);
  ASSERT_EQ(report.rows.size(), 2U);
  for (const BenchmarkRow& row : report.rows) expect_measured(report, row);
  EXPECT_EQ(report.rows[0].tokens, 2 * 16 * 3);
  EXPECT_EQ(report.rows[1].name, "update");
  EXPECT_EQ(report.rows[1].limit, PeakLoop::read);
  EXPECT_NE(report.ceiling(PeakLoop::multiply_add_f32), nullptr);
  EXPECT_NE(report.ceiling(PeakLoop::read), nullptr);
}

TEST_F(BenchmarkTest, ReadsPromptsAndDecodes) {
  BenchmarkOptions prompt = options(BenchmarkSuite::prompt);
  prompt.batch = 3;
  prompt.dtype = WeightFormat::bf16;
  const BenchmarkReport read = run_benchmark(prompt);
  ASSERT_EQ(read.rows.size(), 1U);
  expect_measured(read, read.rows[0]);
  EXPECT_EQ(read.rows[0].tokens, 3 * 128);  // the context is shorter than 512
  prompt.all_logits = true;
  const BenchmarkReport all = run_benchmark(prompt);
  expect_measured(all, all.rows.at(0));
  EXPECT_GT(all.rows[0].flops, read.rows[0].flops);

  BenchmarkOptions decode = options(BenchmarkSuite::decode);
  decode.model = decode.config;  // its own weights
  decode.batch = 2;
  decode.dtype = WeightFormat::int4;
  decode.cache_type = kernels::CacheType::int8;
  decode.context = 120;
  const BenchmarkReport decoded = run_benchmark(decode);
  expect_measured(decoded, decoded.rows.at(0));
  EXPECT_EQ(decoded.rows[0].tokens, 2 * 8);
  EXPECT_EQ(decoded.rows[0].limit, PeakLoop::read);
  EXPECT_EQ(decoded.cache_type, kernels::CacheType::int8);
}

TEST_F(BenchmarkTest, GivesAConfigTheContextThatIsMeasured) {
  BenchmarkOptions prompt = options(BenchmarkSuite::prompt);
  prompt.context = 200;
  EXPECT_EQ(run_benchmark(prompt).rows.at(0).tokens, 200);
  BenchmarkOptions decode = options(BenchmarkSuite::decode);
  decode.context = 200;
  decode.count = 5;
  EXPECT_EQ(run_benchmark(decode).rows.at(0).tokens, 5);
}

TEST_F(BenchmarkTest, MeasuresAttention) {
  BenchmarkOptions attention = options(BenchmarkSuite::attention);
  attention.context = 200;  // no table of positions limits it
  const BenchmarkReport report = run_benchmark(attention);
  ASSERT_EQ(report.rows.size(), 2U);
  for (const BenchmarkRow& row : report.rows) expect_measured(report, row);
  EXPECT_DOUBLE_EQ(report.rows[1].flops, 2.5 * report.rows[0].flops);
}

TEST(TranslatorBenchmark, MeasuresWhatATranslatorDoes) {
  BenchmarkOptions translate{.suite = BenchmarkSuite::translate,
                             .config = "translator-tiny",
                             .batch = 6,
                             .context = 5,
                             .count = 2,
                             .repeats = 2,
                             .beams = 3};
  const BenchmarkReport report = run_benchmark(translate);
  const std::vector<std::string> names{"step", "encode", "greedy", "3 beams"};
  ASSERT_EQ(report.rows.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const BenchmarkRow& row = report.rows[i];
    EXPECT_EQ(row.name, names[i]);
    EXPECT_EQ(row.tokens, 6 * 5 * 2);
    EXPECT_EQ(row.seconds.size(), 2U);
    EXPECT_GT(row.flops, 0);
    EXPECT_GT(row.bytes, 0);
    // The limit is what the work is nearer to.
    const double products = *report.of(row, *row.product_limit);
    const double reads = *report.of(row, PeakLoop::read);
    EXPECT_EQ(*report.of_peak(row), std::max(products, reads));
    EXPECT_GT(*report.of_peak(row), 0);
  }
  EXPECT_GT(report.rows[3].flops, 2 * report.rows[2].flops);

  translate.dtype = WeightFormat::int8;  // which cannot be trained
  translate.cache_type = kernels::CacheType::int8;
  translate.beams = 1;
  translate.context = 70;  // longer than the preset's
  const BenchmarkReport decoding = run_benchmark(translate);
  ASSERT_EQ(decoding.rows.size(), 2U);
  EXPECT_EQ(decoding.rows[0].name, "encode");
  EXPECT_EQ(decoding.rows[1].tokens, 6 * 70 * 2);
}

TEST(TranslatorBenchmark, MeasuresATranslatorsOwnWeights) {
  const testing::TemporaryDirectory directory;
  testing::write_small_translator(directory / "small");
  BenchmarkOptions translate{.suite = BenchmarkSuite::translate,
                             .model = (directory / "small").string(),
                             .batch = 2,
                             .context = 32,
                             .repeats = 1};
  EXPECT_EQ(run_benchmark(translate).rows.size(), 4U);
  translate.context = 33;
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { run_benchmark(translate); }, "33");
  translate.model = "starter";
  testing::expect_error(
      ErrorCode::unsupported, [&] { run_benchmark(translate); }, "heed bench decode -m starter");
  for (const char* config : {"gpt2", "shakespeare-masked", "bert-base-uncased"}) {
    testing::expect_error(
        ErrorCode::unsupported,
        [&] { run_benchmark({.suite = BenchmarkSuite::translate, .config = config}); },
        "no encoder and decoder");
  }
}

TEST_F(BenchmarkTest, ReadsText) {
  BenchmarkOptions tokenizer = options(BenchmarkSuite::tokenizer);
  tokenizer.model = directory_->path().string();
  tokenizer.text_file = (directory_->path() / "config.json").string();
  const BenchmarkReport report = run_benchmark(tokenizer);
  for (const BenchmarkRow& row : report.rows) {
    expect_measured(report, row);
    EXPECT_EQ(row.bytes, std::filesystem::file_size(tokenizer.text_file));
  }
  EXPECT_EQ(report.rows.at(0).threads, 1);
}

TEST_F(BenchmarkTest, RefusesWhatItCannotDo) {
  const auto expect = [](ErrorCode code, const char* message, const BenchmarkOptions& refused) {
    testing::expect_error(
        code, [&] { run_benchmark(refused); }, message);
  };
  BenchmarkOptions refused = options(BenchmarkSuite::train);
  refused.dtype = WeightFormat::int8;
  expect(ErrorCode::unsupported, "int8", refused);
  refused.suite = BenchmarkSuite::attention;
  expect(ErrorCode::unsupported, "int8", refused);
  refused = options(BenchmarkSuite::prompt);
  refused.context = 0;
  expect(ErrorCode::invalid_argument, "context", refused);
  refused = options(BenchmarkSuite::decode);
  refused.model = refused.config;  // its own weights, and so its own context
  refused.context = 100;
  refused.count = 29;
  expect(ErrorCode::invalid_argument, "129", refused);
  refused = options(BenchmarkSuite::decode);
  refused.repeats = 0;
  expect(ErrorCode::invalid_argument, "repeats", refused);
  refused.repeats = 1;
  refused.config = "nonsense";
  expect(ErrorCode::not_found, "gpt2", refused);
}

TEST_F(BenchmarkTest, StopsOnRequest) {
  const std::atomic<bool> stop{true};
  BenchmarkOptions stopped = options(BenchmarkSuite::decode);
  stopped.stop = &stop;
  testing::expect_error(
      ErrorCode::interrupted, [&] { run_benchmark(stopped); }, "interrupted");
}

}  // namespace
}  // namespace heed
