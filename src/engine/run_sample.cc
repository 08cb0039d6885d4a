#include "engine/run_sample.h"

#include <algorithm>

#include "base/error.h"
#include "generate/generator.h"

namespace heed {

std::string run_sample(const Transformer& gpt, const Tokenizer& tokenizer,
                       const TrainSettings& settings, StopFlag stop) {
  std::vector<std::int32_t> prompt{0};
  if (tokenizer.end_of_text()) {
    prompt = {*tokenizer.end_of_text()};
  } else if (tokenizer.kind() != TokenizerKind::character) {
    prompt = tokenizer.encode("\n");
  }
  const std::int64_t room = gpt.specification().context - std::ssize(prompt);
  const GenerationResult result =
      generate(gpt, &tokenizer, prompt,
               {.max_new_tokens = std::min(settings.sample_tokens, room),
                .sampling = {.seed = settings.seed},
                .stop = stop});
  require(result.finish_reason != FinishReason::interrupted, ErrorCode::interrupted,
          "stopped while generating a sample");
  return result.text;
}

}  // namespace heed
