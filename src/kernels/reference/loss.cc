// Cross-entropy and the optimizer step.
#include <algorithm>
#include <cmath>

#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {
namespace {

template <class T>
T log_sum_exp(const T* row, std::int64_t size) {
  const T largest = *std::max_element(row, row + size);
  T sum = 0;
  for (std::int64_t v = 0; v < size; ++v) sum += std::exp(row[v] - largest);
  return largest + std::log(sum);
}

// (1 − rate) · loss + rate · mean of −log p
template <class T>
T smoothed_loss(const T* row, std::int64_t size, T normaliser, T loss, T rate) {
  T sum = 0;
  for (std::int64_t v = 0; v < size; ++v) sum += normaliser - row[v];
  return (T(1) - rate) * loss + rate * sum / static_cast<T>(size);
}

}  // namespace

template <class T>
void cross_entropy_forward(View<const T> logits, View<const std::int32_t> targets, View<T> losses,
                           const LabelSmoothing<T>& smoothing) {
  checks::cross_entropy(logits, targets, losses, smoothing);
  const std::int64_t vocabulary = logits.extent(1);
  for (std::int64_t n = 0; n < logits.extent(0); ++n) {
    const T* row = logits.data() + n * vocabulary;
    const std::int32_t target = targets(n);
    const bool counts = target != ignored_target;
    const T normaliser = counts ? log_sum_exp(row, vocabulary) : T(0);
    losses(n) = counts ? normaliser - row[target] : T(0);
    if (!smoothing.losses.present()) continue;
    smoothing.losses(n) =
        counts ? smoothed_loss(row, vocabulary, normaliser, losses(n), smoothing.rate) : T(0);
  }
}

template <class T>
void cross_entropy_forward_backward(View<T> logits, View<const std::int32_t> targets, T scale,
                                    View<T> losses, const LabelSmoothing<T>& smoothing) {
  // 1: loss = log Σ exp(logits) - logits[target], smoothed
  cross_entropy_forward<T>(logits, targets, losses, smoothing);
  const std::int64_t vocabulary = logits.extent(1);
  const T spread = smoothing.rate / static_cast<T>(vocabulary);
  for (std::int64_t n = 0; n < logits.extent(0); ++n) {
    T* row = logits.data() + n * vocabulary;
    const std::int32_t target = targets(n);
    if (target == ignored_target) {
      std::fill_n(row, vocabulary, T(0));
      continue;
    }
    // 1, undone: ∂loss/∂logits = softmax - wanted
    const T normaliser = log_sum_exp(row, vocabulary);
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      const T wanted = spread + (v == target ? T(1) - smoothing.rate : T(0));
      row[v] = scale * (std::exp(row[v] - normaliser) - wanted);
    }
  }
}

template <class T>
void adamw_step(const AdamWState<T>& state, const AdamWStep<T>& step) {
  checks::adamw(state, step);
  const double count = static_cast<double>(step.step);
  const T correction1 = static_cast<T>(1.0 - std::pow(static_cast<double>(step.beta1), count));
  const T correction2 = static_cast<T>(1.0 - std::pow(static_cast<double>(step.beta2), count));
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    const T gradient = step.gradient_scale * state.gradients[i];
    T& parameter = state.parameters[i];
    T& first = state.first_moment[i];
    T& second = state.second_moment[i];
    first = step.beta1 * first + (T(1) - step.beta1) * gradient;
    second = step.beta2 * second + (T(1) - step.beta2) * gradient * gradient;
    const T update = first / correction1 / (std::sqrt(second / correction2) + step.epsilon);
    parameter -= step.learning_rate * (update + step.weight_decay * parameter);
  }
}

template <class T>
double squared_norm(std::span<const T> x) {
  double sum = 0;
  for (T value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

template <class T>
bool all_finite(std::span<const T> x) {
  return std::all_of(x.begin(), x.end(), [](T value) { return std::isfinite(value); });
}

template void cross_entropy_forward<float>(View<const float>, View<const std::int32_t>, View<float>,
                                           const LabelSmoothing<float>&);
template void cross_entropy_forward<double>(View<const double>, View<const std::int32_t>,
                                            View<double>, const LabelSmoothing<double>&);
template void cross_entropy_forward_backward<float>(View<float>, View<const std::int32_t>, float,
                                                    View<float>, const LabelSmoothing<float>&);
template void cross_entropy_forward_backward<double>(View<double>, View<const std::int32_t>, double,
                                                     View<double>, const LabelSmoothing<double>&);
template void adamw_step<float>(const AdamWState<float>&, const AdamWStep<float>&);
template void adamw_step<double>(const AdamWState<double>&, const AdamWStep<double>&);
template double squared_norm<float>(std::span<const float>);
template double squared_norm<double>(std::span<const double>);
template bool all_finite<float>(std::span<const float>);
template bool all_finite<double>(std::span<const double>);

}  // namespace heed::kernels::reference
