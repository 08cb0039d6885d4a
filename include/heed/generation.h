// A generation that its caller advances, token by token, with hooks in its passes.
//
//   heed::GenerationSteps steps(model, prompt, {.max_new_tokens = 20});
//   while (const auto step = steps.next()) { show(step->text); }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/activations.h"

namespace heed {

// Borrows the model.
class GenerationSteps {
 public:
  struct Step {
    std::optional<std::int32_t> token;  // absent: text that was held back, at the end
    std::string text;                   // final now; may be empty
    Array logits;                       // (V) that the token was sampled from
  };

  // Throws what Model::generate() throws, but for the prompt only in the first call of next();
  // RunOptions::gradient_hooks are not called.
  GenerationSteps(const Model& model, std::vector<std::int32_t> prompt,
                  const Model::GenerateOptions& options, const RunOptions& run_options = {});
  GenerationSteps(GenerationSteps&&) noexcept;
  GenerationSteps& operator=(GenerationSteps&&) noexcept;
  ~GenerationSteps();

  // Nothing at the end. After an exception, at the end too.
  std::optional<Step> next();

  // All of what Model::generate() returns, so far; the reason is empty before the end.
  Model::Generation generation() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
