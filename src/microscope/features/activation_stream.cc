#include "microscope/features/activation_stream.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/elements.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

constexpr std::size_t bytes_of_piece = 1 << 18;  // of text that is encoded at once

// Ends a pass where its upper layers are not wanted.
struct PassIsRead {};

class RowsProbe final : public Probe {
 public:
  RowsProbe(const DictionaryPoints& points, View<float> x, View<float> y)
      : points_(points), x_(x), y_(y) {}

  bool wants(const Point& point) const override {
    return point == points_.input || point == points_.output;
  }
  void observe(const Point& point, View<const float> values) override {
    if (point == points_.input) copy_point_rows(values, points_.input_head, x_);
    if (point != points_.output) return;
    if (y_.present()) copy_point_rows(values, points_.output_head, y_);
    throw PassIsRead{};
  }

 private:
  const DictionaryPoints& points_;
  View<float> x_, y_;
};

std::int64_t rows_of_pass(const StreamSettings& settings) {
  return settings.batch * settings.window;
}

}  // namespace

TokenWindows::TokenWindows(const Tokenizer& tokenizer, std::string_view text, std::int64_t window)
    : tokenizer_(tokenizer), text_(text) {
  require(window >= 1, ErrorCode::invalid_argument, "windows of {} tokens, expected at least 1",
          window);
  while (std::ssize(tokens_) < window && at_ < text_.size()) encode_more();
  require(std::ssize(tokens_) >= window, ErrorCode::invalid_argument,
          "the text has {} tokens, expected at least a window of {}", tokens_.size(), window);
}

void TokenWindows::encode_more() {
  std::size_t end = std::min(text_.size(), at_ + bytes_of_piece);
  while (end < text_.size() && !tokenizer_.may_cut(text_, end)) ++end;
  const std::vector<std::int32_t> piece = tokenizer_.encode(
      text_.substr(at_, end - at_), {.special_tokens = true, .continues = at_ > 0});
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  tokens_.insert(tokens_.end(), piece.begin(), piece.end());
  at_ = end;
}

void TokenWindows::next(std::span<std::int32_t> out) {
  for (std::size_t done = 0; done < out.size();) {
    if (next_ == tokens_.size()) {
      if (at_ == text_.size()) {
        at_ = 0;
        ++passes_;
      }
      encode_more();
      continue;
    }
    const std::size_t count = std::min(out.size() - done, tokens_.size() - next_);
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(next_), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    next_ += count;
    done += count;
  }
  read_ += std::ssize(out);
}

DictionaryPoints::DictionaryPoints(const DictionarySpecification& specification,
                                   const Architecture& architecture)
    : input_head(specification.input_head), output_head(specification.output_head) {
  const auto one = [&](const std::string& name) {
    const std::vector<Point> found = points_named(name, architecture);
    require(found.size() == 1, ErrorCode::invalid_argument,
            "'{}' names {} points of the model, expected one", name, found.size());
    return found.front();
  };
  input = one(specification.input_point);
  output = one(specification.output_points.front());
}

void copy_point_rows(View<const float> values, std::int64_t head, View<float> rows) {
  const std::int64_t positions = values.extent(1);
  for (std::int64_t b = 0; b < values.extent(0); ++b) {
    for (std::int64_t t = 0; t < positions; ++t) {
      const View<const float> row = values[b][t];  // (W), or (H, D)
      const View<float> to = rows[b * positions + t];
      if (row.rank() == 1) {
        kernels::copy(row, to);
      } else if (head >= 0) {
        kernels::copy(row[head], to);
      } else {
        kernels::copy(row, to.split_last(row.extent(0), row.extent(1)));
      }
    }
  }
}

WindowActivations::WindowActivations(const Transformer& model, const DictionaryPoints& points,
                                     std::int64_t batch, std::int64_t window)
    : model_(model),
      points_(points),
      activations_(model.specification(), batch, window, Keep::one_block, 0, model.device()) {}

void WindowActivations::read(std::span<const std::int32_t> tokens, View<float> x, View<float> y) {
  RowsProbe probe(points_, x, y);
  const Shape shape{activations_.batch(), activations_.positions()};
  const Pass pass{.sequences = {shape[0], shape[1]}, .probe = &probe};
  try {
    model_.forward({tokens.data(), shape}, pass, activations_);
  } catch (const PassIsRead&) {
    return;
  }
  fail(ErrorCode::internal, "a pass did not reach {}", point_name(points_.output));
}

std::int64_t ActivationStream::bytes_needed(const Transformer& model,
                                            const DictionarySpecification& specification,
                                            const StreamSettings& settings) {
  const std::int64_t width =
      specification.inputs + (specification.is_transcoder() ? specification.outputs : 0);
  return 4 * width * (settings.rows + rows_of_pass(settings)) +
         StackActivations::bytes_needed(model.specification(), settings.batch, settings.window,
                                        Keep::one_block);
}

ActivationStream::ActivationStream(const Transformer& model, const Tokenizer& tokenizer,
                                   std::string_view text,
                                   const DictionarySpecification& specification,
                                   const StreamSettings& settings)
    : points_(specification, model.architecture()),
      windows_(tokenizer, text, settings.window),
      activations_(model, points_, settings.batch, settings.window),
      random_(settings.seed, 7),
      tokens_(static_cast<std::size_t>(rows_of_pass(settings))),
      buffer_x_(Shape{settings.rows, specification.inputs}),
      fresh_x_(Shape{rows_of_pass(settings), specification.inputs}),
      fresh_next_(rows_of_pass(settings)) {
  if (is_autoencoder()) return;
  buffer_y_ = Tensor<float>(Shape{settings.rows, specification.outputs});
  fresh_y_ = Tensor<float>(Shape{rows_of_pass(settings), specification.outputs});
}

void ActivationStream::read_more(StopFlag stop) {
  require(!stop_requested(stop), ErrorCode::interrupted, "interrupted after {} tokens",
          windows_.read());
  windows_.next(tokens_);
  activations_.read(tokens_, fresh_x_, fresh_y_.present() ? fresh_y_.view() : View<float>{});
  fresh_next_ = 0;
}

void ActivationStream::next(View<float> x, View<float> y, StopFlag stop) {
  const auto fill_place = [&](std::int64_t place) {
    if (fresh_next_ == fresh_x_.shape()[0]) read_more(stop);
    kernels::copy(fresh_x_.view()[fresh_next_], buffer_x_.view()[place]);
    if (fresh_y_.present()) {
      kernels::copy(fresh_y_.view()[fresh_next_], buffer_y_.view()[place]);
    }
    ++fresh_next_;
  };
  const std::int64_t rows = buffer_x_.shape()[0];
  if (!is_filled_) {
    for (std::int64_t place = 0; place < rows; ++place) fill_place(place);
    is_filled_ = true;
  }
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    const auto place = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(rows)));
    kernels::copy(buffer_x_.view()[place], x[n]);
    if (y.present()) {
      kernels::copy(fresh_y_.present() ? buffer_y_.view()[place] : buffer_x_.view()[place], y[n]);
    }
    fill_place(place);
  }
}

}  // namespace heed
