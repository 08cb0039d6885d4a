// Encoders and encoder-decoders in Hugging Face's layout, against what PyTorch computes with the
// same files: tests/golden/make_pair_goldens.py. torch_pre and torch_post are torch.nn.Transformer
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/model_files.h"
#include "kernels/instruction_sets.h"
#include "model/comparison.h"
#include "support/golden.h"
#include "support/golden_gradients.h"
#include "support/small_model.h"
#include "support/tested_instruction_sets.h"

namespace heed {
namespace {
namespace pair_golden {

using kernels::WeightFormat;
using testing::exact;
using testing::RecordingProbe;
using testing::relative_error;

constexpr double forward_tolerance = 1e-5;
constexpr double gradient_tolerance = 1e-4;
// Of activations rounded to bf16, 2^-9 each, through four blocks of sharp attention.
constexpr double rounding_tolerance = 0.03;
// Of activations in integers, half a step each: 1/254 of the largest of 32.
constexpr double integer_tolerance = rounding_tolerance * 512 / 254;
// A tied unembedding is quantised too, while its table of embeddings is not: half a step of int4 is
// a fourteenth of the largest weight of 32.
constexpr double tied_tolerance = 0.15;
constexpr float smoothing = 0.1F;

std::filesystem::path pairs() {
  return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/pairs";
}

struct Case {
  std::string model;
  std::string instruction_set;

  friend std::ostream& operator<<(std::ostream& out, const Case& case_) {
    return out << case_.model << " on " << case_.instruction_set;
  }
};

std::vector<Case> on_every_instruction_set(const std::vector<std::string>& models) {
  std::vector<Case> cases;
  for (const std::string& model : models) {
    for (const std::string& set : testing::tested_instruction_sets()) {
      cases.push_back({model, set});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& tested) {
  return tested.param.model + "_" + tested.param.instruction_set;
}

class PairGolden : public ::testing::TestWithParam<Case> {
 protected:
  PairGolden()
      : directory_(pairs() / GetParam().model),
        file_(SafetensorsFile::open(directory_ / "golden.safetensors")),
        source_(exact<std::int32_t>(file_, "source")),
        targets_(exact<std::int32_t>(file_, "targets")),
        source_starts_(starts("source_starts")) {
    kernels::use_instruction_set(GetParam().instruction_set);
  }
  ~PairGolden() override { kernels::use_instruction_set(""); }

  std::vector<std::int64_t> starts(const std::string& name) const {
    const auto values = exact<std::int32_t>(file_, name);
    return {values.span().begin(), values.span().end()};
  }
  Tensor<float> floats(const std::string& name) const {
    Tensor<float> values(file_.find(name)->shape);
    read_as_f32(*file_.find(name), values);
    return values;
  }
  double number(const std::string& name) const { return exact<double>(file_, name)[0]; }
  float scale() const {
    const auto counted = std::ranges::count_if(
        targets_.span(), [](std::int32_t target) { return target != kernels::ignored_target; });
    return 1.0F / static_cast<float>(counted);
  }

  void expect_points(RecordingProbe& probe, std::size_t at_least) const {
    std::size_t compared = 0;
    for (const TensorEntry& entry : file_.tensors()) {
      constexpr std::string_view prefix = "probe.";
      if (!entry.name.starts_with(prefix)) continue;
      const auto& record = probe.records[entry.name.substr(prefix.size())];
      EXPECT_EQ(record.shape, entry.shape) << entry.name;
      EXPECT_LE(relative_error(record.values, floats(entry.name).span()), forward_tolerance)
          << entry.name;
      ++compared;
    }
    EXPECT_GE(compared, at_least);
  }

  void expect_gradients(const Parameters& parameters, Gradients& gradients,
                        const std::string& prefix) const {
    const Parameters expected = testing::golden_gradients(
        file_, parameters.architecture(), format_of(parameters.architecture()), prefix);
    for (const Parameter& parameter : parameters.list()) {
      EXPECT_LE(relative_error(gradients.tensor(parameter.id).span(),
                               expected.tensor(parameter.id).span()),
                gradient_tolerance)
          << parameter_name(parameter.id);
    }
  }

  std::filesystem::path directory_;
  SafetensorsFile file_;
  Tensor<std::int32_t> source_;
  Tensor<std::int32_t> targets_;
  std::vector<std::int64_t> source_starts_;
};

class EncoderDecoderGolden : public PairGolden {
 protected:
  EncoderDecoderGolden()
      : model_(load_transformer(StacksWanted::two, directory_)),
        target_(exact<std::int32_t>(file_, "target")),
        target_starts_(starts("target_starts")) {}

  const Architecture& architecture() const { return model_.architecture(); }
  TokenRows source() const { return {source_.span(), source_starts_}; }
  PairBatch batch() const {
    return {
        .source = source(), .target = {target_.span(), target_starts_}, .next = targets_.span()};
  }
  Tensor<float> logits_of(const Transformer& model, PairBuffers& buffers) const {
    Tensor<float> logits(Shape{target_.size(), architecture().decoder().vocabulary_size});
    unembed(model.stack(StackSite::decoder), buffers.decoder().unembedding_in(), logits,
            ragged_positions);
    return logits;
  }

  Transformer model_;
  Tensor<std::int32_t> target_;
  std::vector<std::int64_t> target_starts_;
};

TEST_P(EncoderDecoderGolden, OutputsAndLossAgree) {
  PairBuffers buffers(architecture(), Keep::one_block);
  const LossSum loss = model_.loss(batch(), buffers);
  const View<const float> encoded = buffers.encoder().final_norm();
  EXPECT_LE(relative_error(encoded.span(), floats("encoded").span()), forward_tolerance);
  EXPECT_LE(relative_error(logits_of(model_, buffers).span(), floats("logits").span()),
            forward_tolerance);
  EXPECT_NEAR(loss.mean(), number("loss"), 1e-5 * number("loss"));
}

TEST_P(EncoderDecoderGolden, PointsOfBothStacksAgree) {
  const auto has_points = std::ranges::any_of(
      file_.tensors(), [](const TensorEntry& entry) { return entry.name.starts_with("probe."); });
  if (!has_points) GTEST_SKIP() << "torch.nn.Transformer shows none";
  const std::int64_t sources = source_starts_[1], targets = target_starts_[1];
  const StackActivations encoder(architecture().encoder(), 1, sources, Keep::one_block);
  const StackActivations decoder(architecture().decoder(), 1, targets, Keep::one_block, sources);
  RecordingProbe probe;
  model_.forward({{source_.data(), Shape{1, sources}},
                  {.sequences = {1, sources}, .site = StackSite::encoder, .probe = &probe},
                  encoder},
                 {{target_.data(), Shape{1, targets}},
                  {.sequences = {1, targets}, .site = StackSite::decoder, .probe = &probe},
                  decoder});
  expect_points(probe, 29);
}

TEST_P(EncoderDecoderGolden, GradientsAgree) {
  PairBuffers buffers(architecture(), Keep::every_block);
  Gradients gradients(architecture());
  const LossSum loss = model_.loss_and_gradients(batch(), {.scale = scale()}, buffers, gradients);
  EXPECT_NEAR(loss.mean(), number("loss"), 1e-5 * number("loss"));
  expect_gradients(model_.parameters(), gradients, "gradient.");
}

TEST_P(EncoderDecoderGolden, SmoothedLabelsAgree) {
  PairBuffers buffers(architecture(), Keep::every_block);
  buffers.loss() = VocabularyLoss(architecture().decoder().vocabulary_size, smoothing);
  Gradients gradients(architecture());
  const LossSum loss = model_.loss_and_gradients(batch(), {.scale = scale()}, buffers, gradients);
  EXPECT_NEAR(loss.mean(), number("loss"), 1e-5 * number("loss"));
  EXPECT_NEAR(loss.smoothed_mean(), number("smoothed_loss"), 1e-5 * number("smoothed_loss"));
  if (GetParam().model != "torch_pre") return;  // whose gradients the file has
  expect_gradients(model_.parameters(), gradients, "smoothed_gradient.");
}

// Token by token, on keys and values of the source that are projected once.
TEST_P(EncoderDecoderGolden, CachedDecodingIsTheWholePass) {
  const Tensor<float> expected = floats("logits");
  const std::int64_t v = architecture().decoder().vocabulary_size;
  const EncodedSources encoded = model_.encode(source(), CacheType::f32);
  for (std::int64_t b = 0; b < encoded.count(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t first = target_starts_[at], last = target_starts_[at + 1];
    KeyValueCache cache = model_.make_cache(1, last - first, CacheType::f32);
    StackActivations activations(architecture().decoder(), 1, 1, Keep::one_block);
    Tensor<float> logits(Shape{last - first, v});
    for (std::int64_t t = first; t < last; ++t) {
      model_.decode({.tokens = target_.span().subspan(static_cast<std::size_t>(t), 1),
                     .sources = {&b, 1},
                     .encoded = encoded,
                     .cache = cache},
                    activations, logits.view().slice(0, t - first, t - first + 1));
    }
    const View<const float> whole = expected.view().slice(0, first, last);
    EXPECT_LE(relative_error(logits.span(), whole.span()), forward_tolerance) << "pair " << b;
  }
}

// Saved and loaded again, in each format of weights, a model computes the same; and what quantised
// weights compute is, but for the rounding of activations, what f32 computes with their values.
TEST_P(EncoderDecoderGolden, IsReadAsItWasWritten) {
  const testing::ScratchDirectory scratch;
  PairBuffers buffers(architecture(), Keep::one_block);
  const auto run = [&](const Transformer& model) {
    model.loss(batch(), buffers);
    return logits_of(model, buffers);
  };
  for (const WeightFormat format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    save_transformer(model_, scratch.path(), {}, format);
    Transformer loaded = load_transformer(StacksWanted::two, scratch.path());
    EXPECT_EQ(loaded.architecture(), architecture());
    if (format == WeightFormat::f32) {
      EXPECT_TRUE(std::ranges::equal(loaded.parameters().all(), model_.parameters().all()));
    }
    Transformer prepared = load_transformer(StacksWanted::two, directory_);
    prepared.parameters().prepare(format);
    const Tensor<float> logits = run(loaded);
    EXPECT_TRUE(testing::same_bits(logits, run(prepared))) << kernels::weight_format_name(format);
    kernels::refuse_integers_for_long_rows();
    const Tensor<float> rounded = run(loaded);
    kernels::allow_integers_for_long_rows();
    loaded.parameters().prepare(WeightFormat::f32);  // which are the dequantised matrices
    const Tensor<float> exact = run(loaded);
    const double tolerance = format == WeightFormat::int4 ? tied_tolerance : rounding_tolerance;
    EXPECT_LE(relative_error(rounded.span(), exact.span()), tolerance)
        << kernels::weight_format_name(format);
    EXPECT_LE(relative_error(logits.span(), exact.span()), std::max(tolerance, integer_tolerance))
        << kernels::weight_format_name(format);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, EncoderDecoderGolden,
                         ::testing::ValuesIn(on_every_instruction_set({"torch_pre", "torch_post",
                                                                       "marian", "bart", "t5",
                                                                       "t5_gated", "t5_current"})),
                         case_name);

// BERT, sentence by sentence.
class EncoderGolden : public PairGolden {
 protected:
  EncoderGolden()
      : transformer_(load_transformer(StacksWanted::one, directory_)),
        token_types_(exact<std::int32_t>(file_, "token_types")) {}

  std::int64_t sentences() const { return std::ssize(source_starts_) - 1; }
  // Of a sentence.
  template <class T>
  std::span<const T> part(const Tensor<T>& values, std::int64_t sentence) const {
    const auto first = static_cast<std::size_t>(source_starts_[sentence]);
    return values.span().subspan(first,
                                 static_cast<std::size_t>(source_starts_[sentence + 1]) - first);
  }
  static View<const std::int32_t> row(std::span<const std::int32_t> tokens) {
    return {tokens.data(), Shape{1, std::ssize(tokens)}};
  }
  Tensor<float> logits_of(const Transformer& transformer, std::int64_t sentence,
                          Probe* probe = nullptr) const {
    const auto tokens = part(source_, sentence);
    const StackActivations activations(transformer.specification(), 1, std::ssize(tokens),
                                       Keep::one_block);
    transformer.forward(row(tokens),
                        {.sequences = {1, std::ssize(tokens)},
                         .token_types = part(token_types_, sentence),
                         .probe = probe},
                        activations);
    Tensor<float> logits(Shape{std::ssize(tokens), transformer.specification().vocabulary_size});
    transformer.project(activations.unembedding_in(), logits);
    return logits;
  }

  Transformer transformer_;
  Tensor<std::int32_t> token_types_;
};

TEST_P(EncoderGolden, LogitsAndPointsAgree) {
  const Tensor<float> expected = floats("logits");
  for (std::int64_t b = 0; b < sentences(); ++b) {
    RecordingProbe probe;
    const Tensor<float> logits = logits_of(transformer_, b, &probe);
    const View<const float> whole =
        expected.view().slice(0, source_starts_[b], source_starts_[b + 1]);
    EXPECT_LE(relative_error(logits.span(), whole.span()), forward_tolerance) << "sentence " << b;
    if (b == 0) expect_points(probe, 14);
  }
}

TEST_P(EncoderGolden, LossAndGradientsAgree) {
  Gradients gradients(transformer_.architecture());
  LossSum loss, smoothed;
  for (std::int64_t b = 0; b < sentences(); ++b) {
    const auto tokens = row(part(source_, b)), targets = row(part(targets_, b));
    TrainingBuffers buffers(transformer_.specification(), 1, tokens.extent(1));
    const Transformer::Step step{.scale = scale(), .token_types = part(token_types_, b)};
    loss += transformer_.loss_and_gradients(tokens, targets, step, buffers, gradients);
    buffers.loss = VocabularyLoss(transformer_.specification().vocabulary_size, smoothing);
    Gradients unused(transformer_.architecture());
    smoothed += transformer_.loss_and_gradients(tokens, targets, step, buffers, unused);
  }
  EXPECT_NEAR(loss.mean(), number("loss"), 1e-5 * number("loss"));
  EXPECT_NEAR(smoothed.smoothed_mean(), number("smoothed_loss"), 1e-5 * number("smoothed_loss"));
  expect_gradients(transformer_.parameters(), gradients, "gradient.");
}

TEST_P(EncoderGolden, IsReadAsItWasWritten) {
  const testing::ScratchDirectory scratch;
  for (const auto format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    save_transformer(transformer_, scratch.path(), {}, format);
    const Transformer loaded = load_transformer(StacksWanted::one, scratch.path());
    EXPECT_EQ(loaded.specification(), transformer_.specification());
    Transformer prepared = load_transformer(StacksWanted::one, directory_);
    prepared.parameters().prepare(format);
    EXPECT_TRUE(testing::same_bits(logits_of(loaded, 0), logits_of(prepared, 0)))
        << kernels::weight_format_name(format);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, EncoderGolden,
                         ::testing::ValuesIn(on_every_instruction_set({"bert"})), case_name);

TEST(RelativePositions, FallIntoTheBucketsOfT5) {
  const auto file = SafetensorsFile::open(pairs() / "buckets.safetensors");
  const auto both = exact<std::int32_t>(file, "both"), past = exact<std::int32_t>(file, "past");
  const RelativePositions encoder{.both_directions = true}, decoder{};
  ASSERT_EQ(both.size(), 401);
  for (std::int64_t i = 0; i < both.size(); ++i) {
    EXPECT_EQ(encoder.bucket(i - 200), both[i]) << i - 200;
    EXPECT_EQ(decoder.bucket(i - 200), past[i]) << i - 200;
  }
}

}  // namespace pair_golden
}  // namespace
}  // namespace heed
