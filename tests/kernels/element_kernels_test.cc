// What moves, fills, adds up and compares numbers (kernels/elements.h).
#include "kernels/elements.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "base/bf16.h"
#include "base/threads.h"
#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Views of a buffer: a shape, strides, and where the first element is.
struct Layout {
  const char* name;
  Shape shape;
  View<float>::Strides strides;
  std::int64_t first = 0;

  template <class T>
  View<T> of(Tensor<T>& buffer) const {
    return {buffer.data() + first, shape, strides};
  }
};

// In a buffer of 120,000 numbers: some go to several threads.
constexpr std::int64_t buffer_size = 120000;
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"one", {1}, {1}, 5},
      {"none", {3, 0}, {1, 1}},
      {"dense", {7, 13}, {13, 1}},
      {"long", {300, 400}, {400, 1}},
      {"columns", {9, 5}, {40, 1}, 11},
      {"many columns", {300, 100}, {400, 1}, 250},
      {"transposed", {33, 21}, {1, 33}},
      {"every second", {31}, {2}, 1},
      {"heads first", {2, 6, 3, 8}, {144, 8, 48, 1}},
      {"a cache", {2, 2, 3, 5, 4}, {600, 300, 100, 4, 1}, 8},
      {"one of each", {1, 4, 1, 3}, {7, 50, 9, 2}},
  };
  return all;
}

// Calls body(layout) for each on every instruction set.
template <class Body>
void for_each_layout(Body&& body) {
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name);
    on_every_instruction_set([&] { body(layout); });
  }
}

Tensor<float> random_buffer(std::uint64_t stream) {
  return random_twin(Shape{buffer_size}, stream).single;
}

Tensor<float> copy_of(const Tensor<float>& buffer) {
  Tensor<float> copy(buffer.shape());
  std::ranges::copy(buffer.span(), copy.data());
  return copy;
}

void expect_same_bits(const Tensor<float>& actual, const Tensor<float>& expected) {
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.span().size_bytes()), 0);
}

// op(view of a buffer, layout) by the kernel and by the reference leaves the same bits in all of
// the buffer: what is outside of the view stays as it was.
template <class Op, class Reference>
void expect_like_reference(const Op& op, const Reference& reference) {
  for_each_layout([&](const Layout& layout) {
    Tensor<float> actual = random_buffer(1), expected = copy_of(actual);
    op(layout.of(actual), layout);
    reference(layout.of(expected), layout);
    expect_same_bits(actual, expected);
  });
}

TEST(Elements, FillScaleAndReciprocalAreTheReferences) {
  expect_like_reference([](View<float> x, const Layout&) { fill(x, -3.5F); },
                        [](View<float> x, const Layout&) { reference::fill<float>(x, -3.5F); });
  expect_like_reference([](View<float> x, const Layout&) { scale(x, 0.3F); },
                        [](View<float> x, const Layout&) { reference::scale<float>(x, 0.3F); });
  expect_like_reference([](View<float> x, const Layout&) { reciprocal(x, x); },
                        [](View<float> x, const Layout&) { reference::reciprocal<float>(x, x); });
}

TEST(Elements, CopiesAndSumsOfAnyStridesAreTheReferences) {
  Tensor<float> other = random_buffer(2);
  // the other operand is dense, and then the other way round
  const auto dense = [&](const Layout& layout) { return View<float>(other.data(), layout.shape); };
  expect_like_reference(
      [&](View<float> x, const Layout& layout) { copy(dense(layout), x); },
      [&](View<float> x, const Layout& layout) { reference::copy<float>(dense(layout), x); });
  for (const float factor : {1.0F, -0.7F}) {
    expect_like_reference(
        [&](View<float> x, const Layout& layout) { accumulate(dense(layout), x, factor); },
        [&](View<float> x, const Layout& layout) {
          reference::accumulate<float>(dense(layout), x, factor);
        });
  }
  expect_like_reference([&](View<float> x, const Layout& layout) { subtract(x, dense(layout), x); },
                        [&](View<float> x, const Layout& layout) {
                          reference::subtract<float>(x, dense(layout), x);
                        });
  for_each_layout([&](const Layout& layout) {
    Tensor<float> actual(other.shape()), expected(other.shape());
    copy(layout.of(other), View<float>(actual.data(), layout.shape));
    reference::copy<float>(layout.of(other), View<float>(expected.data(), layout.shape));
    expect_same_bits(actual, expected);
  });
}

TEST(Elements, OneRowIsCopiedToMany) {
  const Twin row = random_twin(Shape{17}, 3);
  Tensor<float> rows(Shape{5, 17});
  on_every_instruction_set([&] {
    copy(View<const float>(row.single.data(), {5, 17}, {0, 1}), rows);
    for (std::int64_t n = 0; n < 5; ++n) EXPECT_TRUE(equal_bits(rows.view()[n], row.single));
  });
}

TEST(Elements, IntegersAndBytesAreCopied) {
  Tensor<std::int32_t> numbers(Shape{4, 6}), columns(Shape{6, 4});
  std::iota(numbers.span().begin(), numbers.span().end(), 0);
  copy(View<const std::int32_t>(numbers.data(), {6, 4}, {1, 6}), columns);
  Tensor<std::byte> bytes(Shape{4, 6}), part(Shape{4, 2});
  for (std::int64_t i = 0; i < 24; ++i) bytes[i] = static_cast<std::byte>(i);
  copy(View<const std::byte>(bytes.view()).slice(1, 3, 5), part);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) EXPECT_EQ(columns.view()(j, i), numbers.view()(i, j));
    for (std::int64_t j = 0; j < 2; ++j) EXPECT_EQ(part.view()(i, j), bytes.view()(i, j + 3));
  }
}

TEST(Elements, BitsAreEqualOrNotWhereverTheyDiffer) {
  for_each_layout([&](const Layout& layout) {
    Tensor<float> x = random_buffer(1), y(x.shape());
    const View<float> view = layout.of(x), other(y.data(), layout.shape);
    copy(view, other);
    EXPECT_TRUE(equal_bits(view, other));
    for (const std::int64_t at : {std::int64_t{0}, other.size() / 2, other.size() - 1}) {
      if (other.size() == 0) break;
      y[at] = std::nextafter(y[at], 10.0F);
      EXPECT_FALSE(equal_bits(view, other)) << at;
      EXPECT_FALSE(reference::equal_bits<float>(view, other)) << at;
      copy(view, other);
    }
  });
  Tensor<float> zero(Shape{3}), negative(Shape{3});
  fill(negative, -0.0F);
  EXPECT_FALSE(equal_bits(zero, negative));
  fill(zero, NAN);
  EXPECT_TRUE(equal_bits(zero, zero));
}

TEST(Elements, ASumGoesOnInDoubleAndInOrder) {
  const Twin x = random_twin(Shape{1001}, 4);
  const double whole = reference::sum<float>(x.single, 0.5);
  EXPECT_EQ(sum(x.single, 0.5), whole);
  EXPECT_EQ(sum(x.single.view().slice(0, 400, 1001), sum(x.single.view().slice(0, 0, 400), 0.5)),
            whole);
  EXPECT_EQ(sum(View<const float>(x.single.data(), {500}, {2})),
            reference::sum<float>(View<const float>(x.single.data(), {500}, {2}), 0.0));
}

// Rows of a table, dense and transposed, some met twice.
struct IndexedCase {
  std::int64_t rows, indices, columns;
};
constexpr IndexedCase indexed_cases[] = {
    {1, 1, 1}, {5, 9, 7}, {8, 3, 33}, {40, 900, 65}, {3, 0, 4}};

std::vector<std::int32_t> indices_of(const IndexedCase& shape) {
  std::vector<std::int32_t> indices;
  for (std::int64_t n = 0; n < shape.indices; ++n) {
    indices.push_back(static_cast<std::int32_t>(n * n * 7 % shape.rows));
  }
  return indices;
}

TEST(Rows, AreGatheredAndAddedAsTheReferenceDoes) {
  for (const IndexedCase& shape : indexed_cases) {
    SCOPED_TRACE(shape.indices);
    const std::vector<std::int32_t> indices = indices_of(shape);
    for (const bool transposed : {false, true}) {
      const auto view = [&](Tensor<float>& x, std::int64_t rows) {
        return transposed ? View<float>(x.data(), {rows, shape.columns}, {1, rows})
                          : View<float>(x.data(), {rows, shape.columns});
      };
      Tensor<float> table = random_twin(Shape{shape.rows * shape.columns}, 1).single;
      Tensor<float> given = random_twin(Shape{shape.indices * shape.columns}, 2).single;
      on_every_instruction_set([&] {
        Tensor<float> rows(given.shape()), expected(given.shape());
        gather_rows(view(table, shape.rows), indices, view(rows, shape.indices));
        reference::gather_rows<float>(view(table, shape.rows), indices,
                                      view(expected, shape.indices));
        expect_same_bits(rows, expected);
        Tensor<float> sums = copy_of(table), expected_sums = copy_of(table);
        scatter_add_rows(view(given, shape.indices), indices, view(sums, shape.rows));
        reference::scatter_add_rows<float>(view(given, shape.indices), indices,
                                           view(expected_sums, shape.rows));
        expect_same_bits(sums, expected_sums);
      });
    }
  }
}

TEST(Rows, GradientsMatchFiniteDifferences) {
  const std::vector<std::int32_t> indices = {2, 0, 2, 3, 2};
  Twin table = random_twin(Shape{4, 6}, 1), d_rows = random_twin(Shape{5, 6}, 2);
  Tensor<double> rows(Shape{5, 6}), d_table(Shape{4, 6});
  reference::scatter_add_rows<double>(d_rows.exact, indices, d_table);
  expect_gradient(
      table.exact, d_table,
      [&] {
        reference::gather_rows<double>(table.exact, indices, rows);
        return weigh(d_rows.exact, rows);
      },
      "table");
}

TEST(Rows, IndicesOutsideOfTheTableAreNamed) {
  Tensor<float> table(Shape{3, 2}), rows(Shape{1, 2});
  for (const std::int32_t index : {-1, 3}) {
    const std::vector<std::int32_t> indices = {index};
    try {
      gather_rows(table, indices, rows);
      FAIL() << index;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("row " + std::to_string(index)), std::string::npos)
          << error.what();
    }
    EXPECT_THROW(scatter_add_rows(rows, indices, table), Error);
  }
  EXPECT_THROW(copy(table, rows), Error);
  EXPECT_THROW(accumulate(table, rows), Error);
}

TEST(SoftmaxRows, ForwardBackwardAndMixingAreTheReferences) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    Twin scores = random_twin(Shape{shape.rows, shape.columns}, 1, 3.0);
    for (std::int64_t c = 0; c < shape.columns; ++c) scores.single[c] = -infinity;
    if (shape.rows > 1) scores.single[shape.columns] = -infinity;
    const Twin d_pattern = random_twin(scores.single.shape(), 2);
    const Twin value = random_twin(Shape{shape.columns, 9}, 3);
    on_every_instruction_set([&] {
      Tensor<float> pattern(scores.single.shape()), expected(scores.single.shape());
      softmax_rows(scores.single, pattern);
      reference::softmax_rows<float>(scores.single, expected);
      expect_same_bits(pattern, expected);
      for (std::int64_t c = 0; c < shape.columns; ++c) EXPECT_EQ(pattern[c], 0.0F);

      Tensor<float> gradient = copy_of(d_pattern.single), wanted = copy_of(d_pattern.single);
      softmax_rows_backward(pattern, gradient);
      reference::softmax_rows_backward<float>(pattern, wanted);
      expect_same_bits(gradient, wanted);

      Tensor<float> mixed(Shape{shape.rows, 9}), expected_mixed(Shape{shape.rows, 9});
      mix_rows(pattern, value.single, mixed);
      reference::mix_rows<float>(pattern, value.single, expected_mixed);
      expect_same_bits(mixed, expected_mixed);
    });
  }
}

TEST(SoftmaxRows, GradientsMatchFiniteDifferences) {
  Twin scores = random_twin(Shape{3, 7}, 1), weights = random_twin(Shape{3, 7}, 2);
  Tensor<double> pattern(Shape{3, 7}), gradient(Shape{3, 7});
  reference::softmax_rows<double>(scores.exact, pattern);
  std::ranges::copy(weights.exact.span(), gradient.data());
  reference::softmax_rows_backward<double>(pattern, gradient);
  expect_gradient(
      scores.exact, gradient,
      [&] {
        reference::softmax_rows<double>(scores.exact, pattern);
        return weigh(weights.exact, pattern);
      },
      "scores");
}

TEST(MixRows, AShareOfZeroHidesWhatItsValueIs) {
  Tensor<float> pattern(Shape{1, 2}), value(Shape{2, 3}), out(Shape{1, 3});
  pattern[1] = 0.5F;
  fill(value.view()[0], NAN);
  fill(value.view()[1], 4.0F);
  mix_rows(pattern, value, out);
  for (const float number : out.span()) EXPECT_EQ(number, 2.0F);
}

// Rows with statistics, with and without a mean.
TEST(StandardisedRows, AreTheReferences) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    const Shape rows{shape.rows, shape.columns};
    const Twin x = random_twin(rows, 1, 1.0, 2.0), d_out = random_twin(rows, 2);
    const Twin mean = random_twin(Shape{shape.rows}, 3),
               gain = random_twin(Shape{shape.columns}, 4);
    const Twin factor = random_twin(Shape{shape.rows}, 5, 0.1, 1.0);
    const Twin bias = random_twin(Shape{shape.columns}, 6);
    for (const bool has_mean : {true, false}) {
      const View<const float> subtracted = has_mean ? mean.single.view() : View<const float>();
      const View<const float> added = has_mean ? bias.single.view() : View<const float>();
      const StandardisedRows given{x.single, subtracted, factor.single};
      Tensor<float> expected(rows), expected_out(rows), expected_d(rows);
      Tensor<float> expected_scale(Shape{shape.rows});
      reference::standardise_rows<float>(x.single, subtracted, factor.single, expected);
      reference::apply_gain<float>(expected, {gain.single, added}, expected_out);
      reference::standardise_rows_backward<float>(
          {x.single, subtracted, factor.single, gain.single, d_out.single}, expected_d,
          expected_scale);
      on_every_instruction_set([&] {
        Tensor<float> standardised(rows), out(rows), d(rows), scale(Shape{shape.rows});
        standardise_rows(given, standardised);
        apply_gain(standardised, {gain.single, added}, out);
        standardise_rows_backward(given, gain.single, d_out.single, {.rows = d, .scale = scale});
        expect_same_bits(standardised, expected);
        expect_same_bits(out, expected_out);
        expect_same_bits(d, expected_d);
        expect_same_bits(scale, expected_scale);
      });
    }
  }
}

TEST(StandardisedRows, GradientsMatchFiniteDifferences) {
  const Shape shape{3, 5};
  Twin x = random_twin(shape, 1), d_out = random_twin(shape, 2), gain = random_twin(Shape{5}, 3);
  Twin mean = random_twin(Shape{3}, 4), scale = random_twin(Shape{3}, 5, 0.1, 1.0);
  Tensor<double> factor(Shape{3}), rows(shape), out(shape), d_rows(shape), d_scale(Shape{3});
  const auto gained = [&] {
    reference::apply_gain<double>(rows, {gain.exact, {}}, out);
    return weigh(d_out.exact, out);
  };
  const auto loss = [&] {
    reference::reciprocal<double>(scale.exact, factor);
    reference::standardise_rows<double>(x.exact, mean.exact, factor, rows);
    return gained();
  };
  loss();
  reference::standardise_rows_backward<double>(
      {x.exact, mean.exact, factor, gain.exact, d_out.exact}, d_rows, d_scale);
  expect_gradient(rows, d_rows, gained, "rows");
  expect_gradient(scale.exact, d_scale, loss, "scale");
}

TEST(ConstantScaleNorm, BackwardIsTheReference) {
  for (const Centring centring : {Centring::none, Centring::mean}) {
    const Shape rows{5, 37};
    const Twin gain = random_twin(Shape{37}, 1), d_out = random_twin(rows, 2);
    const Twin factor = random_twin(Shape{5}, 3, 0.1, 1.0);
    const Twin before = random_twin(rows, 4);  // it accumulates
    Tensor<float> expected(rows);
    std::ranges::copy(before.single.span(), expected.data());
    reference::constant_scale_norm_backward<float>(gain.single, factor.single, centring,
                                                   d_out.single, expected);
    on_every_instruction_set([&] {
      Tensor<float> d_x(rows);
      std::ranges::copy(before.single.span(), d_x.data());
      constant_scale_norm_backward({gain.single, factor.single, centring}, d_out.single, d_x);
      expect_same_bits(d_x, expected);
    });
  }
}

TEST(ConstantScaleNorm, GradientMatchesFiniteDifferences) {
  const Shape shape{3, 6};
  Twin x = random_twin(shape, 1);
  const Twin d_out = random_twin(shape, 2), gain = random_twin(Shape{6}, 3);
  const Twin factor = random_twin(Shape{3}, 4, 0.1, 1.0);
  for (const Centring centring : {Centring::none, Centring::mean}) {
    Tensor<double> rows(shape), out(shape), d_x(shape), mean(Shape{3});
    const auto loss = [&] {  // the mean follows the rows, the deviation does not
      for (std::int64_t n = 0; n < 3; ++n) {
        double sum = 0;
        for (const double value : View<const double>(x.exact)[n].span()) sum += value;
        mean[n] = centring == Centring::mean ? sum / 6 : 0;
      }
      reference::standardise_rows<double>(x.exact, mean, factor.exact, rows);
      reference::apply_gain<double>(rows, {gain.exact, {}}, out);
      return weigh(d_out.exact, out);
    };
    d_x.fill(0);
    reference::constant_scale_norm_backward<double>(gain.exact, factor.exact, centring, d_out.exact,
                                                    d_x);
    expect_gradient(x.exact, d_x, loss, "x");
  }
}

TEST(Angles, SinusoidsAndRotationsAreTheReferences) {
  for (const std::int64_t channels : {1, 2, 7, 64}) {
    Tensor<float> table(Shape{11, channels}), expected(Shape{11, channels});
    const std::int64_t pairs = (channels + 1) / 2;
    const auto split = [&](Tensor<float>& all, const auto& run) {
      run(all.view().slice(1, 0, pairs), all.view().slice(1, pairs, channels));
    };
    split(table, [](View<float> sine, View<float> cosine) { sinusoids(sine, cosine); });
    split(expected,
          [](View<float> sine, View<float> cosine) { reference::sinusoids<float>(sine, cosine); });
    expect_same_bits(table, expected);
  }
  const std::vector<std::int64_t> positions = {0, 1, 7, 4000, 7};
  const std::vector<double> frequencies = {1.0, 0.1, 0.003, 0.5, 0.2, 0.7};
  const View<const double> table(frequencies.data(), {2, 3});
  Tensor<float> cosine(Shape{5, 3}), sine(Shape{5, 3});
  Tensor<float> expected_cosine(Shape{5, 3}), expected_sine(Shape{5, 3});
  rotary_angles({.positions = positions, .frequencies = table, .magnitude = 1.25}, cosine, sine);
  reference::rotary_angles<float>(positions, table, 1.25, expected_cosine, expected_sine);
  expect_same_bits(cosine, expected_cosine);
  expect_same_bits(sine, expected_sine);
  const std::vector<std::int32_t> rows = {0, 1, 1, 0, 0};
  rotary_angles({.positions = positions, .frequencies = table, .rows = rows}, cosine, sine);
  reference::rotary_angles<float>(positions, table.slice(0, 1, 2), 1.0, expected_cosine,
                                  expected_sine);
  EXPECT_TRUE(equal_bits(cosine.view().slice(0, 1, 3), expected_cosine.view().slice(0, 1, 3)));
  EXPECT_FALSE(equal_bits(sine.view()[3], expected_sine.view()[3]));
}

TEST(NormalDeviates, OfAPartAreThoseOfTheWhole) {
  const NormalDeviates all{.seed = 3, .first_stream = 40, .deviation = 0.02F, .end = 70 * 11};
  Tensor<float> whole(Shape{70, 11}), parts(Shape{70, 11});
  fill_normal(whole, all);
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 30}, {30, 30}, {30, 770}}) {
    NormalDeviates part = all;
    part.begin = begin;
    part.end = end;
    fill_normal(parts, part);
    EXPECT_TRUE(end == 770 || parts[end] == 0.0F) << end;
  }
  expect_same_bits(parts, whole);
  RandomStream row(3, 42);
  EXPECT_EQ(whole[22], 0.02F * static_cast<float>(row.normal()));
  EXPECT_THROW(fill_normal(parts, {.end = 771}), Error);
}

TEST(Pages, StayZeroWhenTheyAreTouched) {
  Tensor<float> matrix(Shape{37, 5000});
  touch_pages(matrix);
  EXPECT_TRUE(equal_bits(matrix, Tensor<float>(matrix.shape())));
}

TEST(FindNotFinite, FindsTheFirstThatAFormatCannotHold) {
  std::vector<float> weights(70001, 1.0F);
  EXPECT_FALSE(find_not_finite(weights, WeightFormat::int8));
  weights[69000] = 3.4e38F;  // rounds to infinity in bf16
  EXPECT_EQ(find_not_finite(weights, WeightFormat::bf16), 3.4e38F);
  EXPECT_FALSE(find_not_finite(weights, WeightFormat::int8)) << "its scale is a 127th of it";
  weights[60000] = -infinity;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    EXPECT_EQ(find_not_finite(weights, format), -infinity);
  }
}

TEST(CrossEntropyPieceLosses, AreTheReferencesAndThoseOfAllLogits) {
  const std::int64_t rows = 6, vocabulary = 40;
  const Twin logits = random_twin(Shape{rows, vocabulary}, 1, 2.0);
  Tensor<std::int32_t> targets(Shape{rows});
  for (std::int64_t n = 0; n < rows; ++n) targets[n] = static_cast<std::int32_t>(n * 7 - 1);
  Tensor<float> normaliser(Shape{rows}), target_logit(Shape{rows}), logit_sum(Shape{rows});
  fill(normaliser, -infinity);
  const VocabularySums<float> sums{normaliser, target_logit, logit_sum};
  cross_entropy_piece_forward(logits.single, {0, vocabulary}, targets, sums);
  for (const float rate : {0.0F, 0.1F}) {
    Tensor<float> losses(Shape{rows}), smoothed(Shape{rows}), whole(Shape{rows}),
        whole_smoothed(Shape{rows}), expected(Shape{rows}), expected_smoothed(Shape{rows});
    cross_entropy_piece_losses(sums, vocabulary, targets, losses, {rate, smoothed});
    reference::cross_entropy_piece_losses<float>(sums, vocabulary, targets, expected,
                                                 {rate, expected_smoothed});
    expect_same_bits(losses, expected);
    expect_same_bits(smoothed, expected_smoothed);
    reference::cross_entropy_forward<float>(logits.single, targets, whole, {rate, whole_smoothed});
    EXPECT_EQ(losses[0], 0.0F) << "ignored";
    EXPECT_EQ(smoothed[0], 0.0F) << "ignored";
    // a sum of 40 exponentials, a logarithm and a difference: some roundings of numbers below 16
    EXPECT_LE(relative_error(losses, whole), 64.0 * unit_roundoff);
    EXPECT_LE(relative_error(smoothed, whole_smoothed), 64.0 * unit_roundoff);
  }
  Tensor<float> losses(Shape{rows});
  EXPECT_THROW(cross_entropy_piece_losses({normaliser, target_logit}, vocabulary, targets, losses,
                                          {.rate = 0.1F}),
               Error);
}

}  // namespace
}  // namespace heed::kernels
