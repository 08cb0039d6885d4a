#include "generate/edited_decoding.h"

#include <algorithm>

namespace heed {

EditedDecoding::EditedDecoding(const EncoderDecoder& model, std::span<const std::int32_t> source,
                               Editor& editor)
    : model_(model), editor_(editor), row_starts_{0, std::ssize(source)} {
  const std::int64_t positions = std::ssize(source);
  GptActivations activations(model.architecture().encoder(), 1, positions, Keep::one_block);
  stack_forward(model.encoder(), {source.data(), Shape{1, positions}},
                {.positions = positions, .site = StackSite::encoder, .editor = &editor},
                activations);
  rows_ = Tensor<float>(activations.final_norm().shape());
  std::ranges::copy(activations.final_norm().span(), rows_.data());
}

void EditedDecoding::decode(std::span<const std::int32_t> tokens, KeyValueCache& cache,
                            GptActivations& activations, View<float> logits) const {
  const std::int64_t hypotheses = std::ssize(tokens);
  activations.resize(hypotheses, 1, row_starts_.back());
  const std::vector<std::int64_t> sources(tokens.size(), 0);
  const CrossMemory memory{.rows = rows_, .row_starts = row_starts_, .sources = sources};
  const Pass pass{.batch = hypotheses,
                  .positions = 1,
                  .first_position = cache.length(),
                  .cache = &cache,
                  .projected_as = kernels::decoding_step,
                  .memory = &memory,
                  .site = StackSite::decoder,
                  .editor = &editor_};
  stack_forward(model_.decoder(), {tokens.data(), Shape{hypotheses, 1}}, pass, activations);
  unembed(model_.decoder(), activations.unembedding_in(), logits, pass.projected_positions());
}

}  // namespace heed
