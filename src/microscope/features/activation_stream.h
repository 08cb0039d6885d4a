// Activations of a model over a text, in random order, without a copy on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/random.h"
#include "microscope/features/dictionary.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// The tokens of a text in windows of one length, piece by piece, from the beginning again after the
// end. Borrows the text and the tokenizer.
class TokenWindows {
 public:
  // Throws Error{invalid_argument} for a text that is shorter than a window.
  TokenWindows(const Tokenizer& tokenizer, std::string_view text, std::int64_t window);

  // The next tokens: whole windows, (B, T).
  void next(std::span<std::int32_t> out);
  std::int64_t read() const { return read_; }      // tokens so far
  std::int64_t passes() const { return passes_; }  // how often the text has ended

 private:
  void encode_more();

  const Tokenizer& tokenizer_;
  std::string_view text_;
  std::size_t at_ = 0;  // of the text, where the next piece begins
  std::vector<std::int32_t> tokens_;
  std::size_t next_ = 0;  // of them
  std::int64_t read_ = 0;
  std::int64_t passes_ = 0;
};

// Where a dictionary reads and writes rows of a model.
struct DictionaryPoints {
  Point input;
  Point output;  // the same one of an autoencoder
  std::int64_t input_head = -1;
  std::int64_t output_head = -1;

  // Throws what points_named() throws, and Error{invalid_argument} for names of several points.
  DictionaryPoints(const DictionarySpecification& specification, const Architecture& architecture);
  bool is_autoencoder() const { return input == output && input_head == output_head; }
};

// Rows (B · T, W) of values (B, T, W) or (B, T, H, D): all heads side by side, or one of them.
void copy_point_rows(View<const float> values, std::int64_t head, View<float> rows);

// Activations of windows of tokens. The pass ends where the last point was seen.
class WindowActivations {
 public:
  WindowActivations(const Transformer& model, const DictionaryPoints& points, std::int64_t batch,
                    std::int64_t window);
  // x (B · T, I), y (B · T, O); y is absent for autoencoders.
  void read(std::span<const std::int32_t> tokens, View<float> x, View<float> y);

 private:
  const Transformer& model_;
  DictionaryPoints points_;
  StackActivations activations_;
};

struct StreamSettings {
  std::int64_t window = 128;    // tokens of a text that see each other
  std::int64_t batch = 16;      // windows of a pass
  std::int64_t rows = 1 << 15;  // of the buffer that rows are drawn from
  std::uint64_t seed = 0;
};

// A buffer of rows: each that is drawn makes room for the next one of the text.
class ActivationStream {
 public:
  ActivationStream(const Transformer& model, const Tokenizer& tokenizer, std::string_view text,
                   const DictionarySpecification& specification, const StreamSettings& settings);

  // Draws rows x (N, I) and y (N, O), which is x of an autoencoder where it is absent. Throws
  // Error{interrupted} when stopped.
  void next(View<float> x, View<float> y, StopFlag stop = nullptr);
  const TokenWindows& windows() const { return windows_; }
  bool is_autoencoder() const { return points_.is_autoencoder(); }

  static std::int64_t bytes_needed(const Transformer& model,
                                   const DictionarySpecification& specification,
                                   const StreamSettings& settings);

 private:
  void read_more(StopFlag stop);

  DictionaryPoints points_;
  TokenWindows windows_;
  WindowActivations activations_;
  RandomStream random_;
  std::vector<std::int32_t> tokens_;
  Tensor<float> buffer_x_, buffer_y_;  // (M, I), (M, O)
  Tensor<float> fresh_x_, fresh_y_;    // (B · T, I), (B · T, O), of a pass
  std::int64_t fresh_next_;
  bool is_filled_ = false;
};

}  // namespace heed
