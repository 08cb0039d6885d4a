// Operands of a kernel in one place. Those that lie elsewhere are copied there for the call, and
// back where the kernel writes: any mixture computes, and what is worth the time lies right.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_sequences.h"
#include "kernels/attention_summaries.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "kernels/sparse_rows.h"
#include "tensor/tensor.h"

namespace heed::kernels {

// Calls visit(view) for each view or span of numbers in an operand; what it changes is what the
// kernel gets. Integers (tokens, targets, indices, positions) are the processor's: a kernel of an
// accelerator copies them itself.
template <class Visit, class T>
void visit_numbers(Visit&& visit, View<T>& view) {
  if constexpr (!std::is_integral_v<std::remove_const_t<T>>) visit(view);
}
template <class Visit, class T>
void visit_numbers(Visit&& visit, std::span<T>& numbers) {
  if constexpr (std::is_floating_point_v<std::remove_const_t<T>>) visit(numbers);
}
template <class Visit, class... Operands>
void visit_all(Visit&& visit, Operands&... operands) {
  (visit_numbers(visit, operands), ...);
}

template <class Visit>
void visit_numbers(Visit&& visit, EmbeddingInput<float>& o) {
  visit_all(visit, o.token_table, o.position_table);
}
template <class Visit>
void visit_numbers(Visit&& visit, EmbeddingGradients<float>& o) {
  visit_all(visit, o.token_table, o.position_table);
}
template <class Visit>
void visit_numbers(Visit&& visit, NormParameters<float>& o) {
  visit_all(visit, o.gain, o.bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, NormStatistics<float>& o) {
  visit_all(visit, o.mean, o.reciprocal_deviation);
}
template <class Visit>
void visit_numbers(Visit&& visit, NormGradients<float>& o) {
  visit_all(visit, o.gain, o.bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, RotaryTable<float>& o) {
  visit_all(visit, o.cosine, o.sine);
}
// A weight that is prepared is not read.
template <class Visit>
void visit_numbers(Visit&& visit, LinearParameters<float>& o) {
  if (o.prepared == nullptr) visit_all(visit, o.weight);
  visit_all(visit, o.bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, LinearGradients<float>& o) {
  visit_all(visit, o.weight, o.bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, PositionBias<float>& o) {
  visit_all(visit, o.values);
}
template <class Visit>
void visit_numbers(Visit&& visit, AttentionInput<float>& o) {
  visit_all(visit, o.query, o.key, o.value, o.position_bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, AttentionPart<float>& o) {
  visit_all(visit, o.out, o.log_sum_exp);
}
template <class Visit>
void visit_numbers(Visit&& visit, AttentionGradients<float>& o) {
  visit_all(visit, o.query, o.key, o.value, o.position_bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, AdamWState<float>& o) {
  visit_all(visit, o.parameters, o.gradients, o.first_moment, o.second_moment);
}
template <class Visit>
void visit_numbers(Visit&& visit, LabelSmoothing<float>& o) {
  visit_all(visit, o.losses);
}
template <class Visit>
void visit_numbers(Visit&& visit, VocabularySums<float>& o) {
  visit_all(visit, o.normaliser, o.target_logit, o.logit_sum);
}
template <class Visit, class Byte, class Number>
void visit_numbers(Visit&& visit, QuantisedRows<Byte, Number>& o) {
  visit_all(visit, o.rows, o.scales);
}
template <class Visit>
void visit_numbers(Visit&& visit, QuantisedCacheAttention& o) {
  visit_all(visit, o.query, o.key, o.value, o.position_bias);
}
template <class Visit>
void visit_numbers(Visit&& visit, SequenceAttention& o) {
  if (o.is_quantised()) {
    visit_all(visit, o.input.query, o.input.position_bias, o.quantised_key, o.quantised_value);
  } else {
    visit_all(visit, o.input);
  }
  visit_all(visit, o.out, o.log_sum_exp);
}
template <class Visit>
void visit_numbers(Visit&& visit, SequenceAttentionBackward& o) {
  visit_all(visit, o.input, o.out, o.log_sum_exp, o.d_out, o.gradients);
}
template <class Visit>
void visit_numbers(Visit&& visit, AttentionRowStatistics<float>& o) {
  visit_all(visit, o.entropy, o.distance, o.first, o.self, o.previous, o.duplicate, o.induction,
            o.largest);
}
template <class Visit>
void visit_numbers(Visit&& visit, PooledAttention<float>& o) {
  visit_all(visit, o.sum, o.largest);
}
template <class Visit>
void visit_numbers(Visit&& visit, StandardisedRows& o) {
  visit_all(visit, o.x, o.mean, o.reciprocal_deviation);
}
template <class Visit>
void visit_numbers(Visit&& visit, StandardisedGradients& o) {
  visit_all(visit, o.rows, o.scale);
}
template <class Visit>
void visit_numbers(Visit&& visit, ConstantScaleNorm& o) {
  visit_all(visit, o.gain, o.reciprocal_deviation);
}
template <class Visit>
void visit_numbers(Visit&& visit, SparseRows& o) {
  visit_all(visit, o.matrix, o.factors);
}

// Numbers of operands that hold none, or hold them where every kernel finds them.
template <class Visit>
void visit_numbers(Visit&&, std::reference_wrapper<const PreparedWeight>&) {}
template <class Visit, class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void visit_numbers(Visit&&, T&) {}
template <class Visit>
void visit_numbers(Visit&&, Dropout&) {}
template <class Visit>
void visit_numbers(Visit&&, AttentionTile&) {}
template <class Visit>
void visit_numbers(Visit&&, VocabularyPiece&) {}
template <class Visit>
void visit_numbers(Visit&&, AdamWStep<float>&) {}
template <class Visit>
void visit_numbers(Visit&&, NormalDeviates&) {}
template <class Visit>
void visit_numbers(Visit&&, RotaryAngles&) {}

// Sends all kernels to the accelerator that is open, wherever their operands are, for tests: every
// call copies all of them there and back. cpu: to where operands are, as at first.
void compute_on(Device device);
extern std::atomic<bool> computes_on_accelerator;

// Whether any operand lies on an accelerator.
template <class... Operands>
bool any_on_accelerator(Operands&... operands) {
  bool found = computes_on_accelerator.load(std::memory_order_relaxed);
  visit_all([&](const auto& numbers) { found = found || is_on_accelerator(numbers.data()); },
            operands...);
  return found;
}

// Copies of operands that lie elsewhere, which live until the kernel is done.
class MovedOperands {
 public:
  explicit MovedOperands(Device to) : to_(to) {}

  template <class T>
  void operator()(View<T>& view) {
    if (!view.present() || view.size() == 0 || view.device() == to_) return;
    view = moved(view);
  }
  template <class T>
  void operator()(std::span<T>& numbers) {
    if (numbers.empty() || device_of(numbers.data()) == to_) return;
    View<T> view(numbers.data(), {static_cast<std::int64_t>(numbers.size())});
    numbers = moved(view).span();
  }

  // Copies what was written back to where it is wanted.
  void finish() {
    for (const Moved& one : moved_) {
      if (one.copy_back != nullptr) one.copy_back(one);
    }
  }

 private:
  struct Moved {
    View<std::byte> copy, original;   // of which the types are forgotten
    void (*copy_back)(const Moved&);  // null: no kernel writes to it
  };

  template <class T>
  static View<std::byte> forget(const View<T>& view) {
    auto* const data = const_cast<std::remove_const_t<T>*>(view.data());
    return {reinterpret_cast<std::byte*>(data), view.shape(), view.strides()};
  }
  template <class Number>
  static View<Number> remember(const View<std::byte>& view) {
    return {reinterpret_cast<Number*>(view.data()), view.shape(), view.strides()};
  }
  template <class Number>
  static void copy_back(const Moved& one) {
    kernels::copy(View<const Number>(remember<Number>(one.copy)), remember<Number>(one.original));
  }

  // What several operands are, such as x and out of a kernel that works in place or a table that
  // sequences share, is one copy; dimensions of stride 0 stay such.
  template <class T>
  View<T> moved(const View<T>& view) {
    using Number = std::remove_const_t<T>;
    const View<std::byte> original = forget(view);
    for (Moved& one : moved_) {
      if (one.original.data() != original.data() || one.original.shape() != view.shape() ||
          one.original.strides() != view.strides()) {
        continue;
      }
      if constexpr (!std::is_const_v<T>) one.copy_back = copy_back<Number>;
      return remember<Number>(one.copy);
    }
    View<T> distinct = view;
    for (int i = 0; i < view.rank(); ++i) {
      if (view.stride(i) == 0 && view.extent(i) > 1) distinct = distinct.slice(i, 0, 1);
    }
    const auto bytes = static_cast<std::size_t>(distinct.size()) * sizeof(Number);
    memory_.push_back(allocate_uncleared(bytes, to_));
    const View<Number> dense(reinterpret_cast<Number*>(memory_.back().get()), distinct.shape());
    kernels::copy(View<const Number>(distinct), dense);
    auto strides = dense.strides();
    for (int i = 0; i < view.rank(); ++i) {
      if (view.stride(i) == 0 && view.extent(i) > 1) strides[static_cast<std::size_t>(i)] = 0;
    }
    const View<Number> copy(dense.data(), view.shape(), strides);
    moved_.push_back({forget(copy), original, nullptr});
    if constexpr (!std::is_const_v<T>) moved_.back().copy_back = copy_back<Number>;
    return copy;
  }

  Device to_;
  std::vector<Memory> memory_;
  std::vector<Moved> moved_;
};

// Calls a kernel where its operands are: that of the processor, or of an accelerator if any of them
// lies on one.
template <auto cpu_kernel, auto cuda_kernel, class... Operands>
decltype(auto) in_place_of(Operands... operands) {
  if constexpr (can_have_accelerators) {
    if (any_on_accelerator(operands...)) [[unlikely]] {
      MovedOperands moved(opened_device());
      visit_all(moved, operands...);
      if constexpr (std::is_void_v<decltype(cuda_kernel(operands...))>) {
        cuda_kernel(operands...);
        moved.finish();
        return;
      } else {
        return cuda_kernel(operands...);
      }
    }
  }
  return cpu_kernel(operands...);
}

// The kernel of the processor, on copies of operands that lie elsewhere: for what is rare enough
// that an accelerator has no kernel for it.
template <auto cpu_kernel, class... Operands>
decltype(auto) on_processor(Operands... operands) {
  if (any_on_accelerator(operands...)) [[unlikely]] {
    MovedOperands moved{Device{}};
    visit_all(moved, operands...);
    if constexpr (std::is_void_v<decltype(cpu_kernel(operands...))>) {
      cpu_kernel(operands...);
      moved.finish();
      return;
    } else {
      return cpu_kernel(operands...);
    }
  }
  return cpu_kernel(operands...);
}

}  // namespace heed::kernels
