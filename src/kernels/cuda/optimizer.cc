// Operations over whole arenas, on the device: the optimizer step, the gradient norm, the check for
// non-finite values.
#include "kernels/cuda/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// 1 / (1 − beta^step)
float inverse_correction(float beta, std::int64_t step) {
  const double correction = 1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step));
  return 1.0F / static_cast<float>(correction);
}

}  // namespace

void cuda::adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step) {
  checks::adamw(state, step);
  if (state.parameters.empty()) return;
  static const Function<HeedAdamW> launch("adamw_step");
  launch({.count = std::ssize(state.parameters),
          .parameters = state.parameters.data(),
          .gradients = state.gradients.data(),
          .first_moment = state.first_moment.data(),
          .second_moment = state.second_moment.data(),
          .learning_rate = step.learning_rate,
          .beta1 = step.beta1,
          .beta2 = step.beta2,
          .epsilon = step.epsilon,
          .weight_decay = step.weight_decay,
          .gradient_scale = step.gradient_scale,
          .unbias1 = inverse_correction(step.beta1, step.step),
          .unbias2 = inverse_correction(step.beta2, step.step)});
}

double cuda::squared_norm(std::span<const float> x) {
  if (x.empty()) return 0.0;
  // A part has 4,096 numbers or more: 16 of each thread.
  const auto parts = std::clamp<std::int64_t>(std::ssize(x) / 4096, 1, 1024);
  const Scratch<double> sums(parts + 1);
  static const Function<HeedSquaredNorm> launch("squared_norm");
  launch({.count = std::ssize(x),
          .x = x.data(),
          .sums = sums.data(),
          .parts = static_cast<int>(parts),
          .result = sums.data() + parts});
  return read_back(sums.data() + parts);
}

bool cuda::all_finite(std::span<const float> x) {
  if (x.empty()) return true;
  const Scratch<unsigned> found(1);
  clear_bytes(found.data(), sizeof(unsigned));
  static const Function<HeedAllFinite> launch("find_not_finite");
  launch({.count = std::ssize(x), .x = x.data(), .found = found.data()});
  return read_back(found.data()) == 0;
}

}  // namespace heed::kernels
