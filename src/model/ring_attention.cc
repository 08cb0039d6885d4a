#include "model/ring_attention.h"

#include <limits>

#include "kernels/dropout_hash.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/key_value_ring.h"

namespace heed {
namespace {

void fit(Tensor<float>& tensor, const Shape& shape) {
  if (!tensor.present() || tensor.shape() != shape) tensor = Tensor<float>(shape);
}

// Sequences of chunk `chunk`, of those of all chunks.
template <class T>
View<T> of_chunk(const View<T>& view, std::int64_t chunk) {
  const std::int64_t batch = view.extent(0) / RingPlace::chunks;
  return view.slice(0, chunk * batch, (chunk + 1) * batch);
}

// One pass around the ring, as a member makes it.
class Round {
 public:
  Round(const LayerPass& at, const kernels::AttentionInput<float>& input)
      : ring_(*at.pass.ring), place_(ring_.place()), buffers_(ring_.buffers()), input_(input) {
    const Shape& query = input.query.shape();
    const std::int64_t batch = query[0] / RingPlace::chunks, length = query[1];
    const Shape key{batch, length, input.key.extent(2), query[3]};
    for (Tensor<float>& memory : buffers_.memory) {
      fit(memory, {2, query[0], length, key[2], key[3]});
    }
    fit(buffers_.out, {batch, length, query[2], query[3]});
    fit(buffers_.log_sum_exp, {batch, query[2], length});
    kernels::copy(input.key, part(buffers_.memory[0], 0));
    kernels::copy(input.value, part(buffers_.memory[0], 1));
  }

  void forward(View<float> mixed, View<float> log_sum_exp) {
    kernels::fill(mixed, 0.0F);
    kernels::fill(log_sum_exp, -std::numeric_limits<float>::infinity());
    for (int turn = 0; turn < place_.members; ++turn) {
      const bool is_last = turn + 1 == place_.members;
      if (!is_last) ring_.begin(buffers_.memory[0].span(), buffers_.memory[1].span());
      for_each_pair(turn, [&](std::int64_t query, std::int64_t, const auto& input) {
        kernels::attention_forward(input, buffers_.out, buffers_.log_sum_exp);
        kernels::merge_attention({buffers_.out, buffers_.log_sum_exp}, of_chunk(mixed, query),
                                 of_chunk(log_sum_exp, query));
      });
      if (!is_last) receive(buffers_.memory);
    }
  }

  void backward(View<const float> mixed, View<const float> log_sum_exp, View<const float> d_mixed,
                const kernels::AttentionGradients<float>& gradients) {
    for (Tensor<float>& memory : buffers_.d_memory) fit(memory, buffers_.memory[0].shape());
    const Shape chunk{buffers_.out.shape()[0], place_.chunk_length(), input_.key.extent(2),
                      input_.key.extent(3)};
    fit(buffers_.d_key, chunk);
    fit(buffers_.d_value, chunk);
    kernels::fill(buffers_.d_memory[0], 0.0F);
    kernels::fill(gradients.query, 0.0F);
    for (int turn = 0; turn < place_.members; ++turn) {
      const bool is_last = turn + 1 == place_.members;
      // The gradients of what is at hand are one turn behind: they arrive while its first pair is
      // computed.
      bool is_arriving = turn > 0;
      const auto arrive = [&] {
        if (is_arriving) receive(buffers_.d_memory);
        is_arriving = false;
      };
      if (turn > 0) ring_.begin(buffers_.d_memory[0].span(), buffers_.d_memory[1].span());
      if (!is_last) ring_.begin(buffers_.memory[0].span(), buffers_.memory[1].span());
      for_each_pair(turn, [&](std::int64_t query, std::int64_t key, const auto& input) {
        kernels::attention_backward(
            input, of_chunk(mixed, query), of_chunk(log_sum_exp, query), of_chunk(d_mixed, query),
            {.query = buffers_.out, .key = buffers_.d_key, .value = buffers_.d_value});
        kernels::accumulate(buffers_.out, of_chunk(gradients.query, query));
        arrive();
        kernels::accumulate(buffers_.d_key, of_chunk(part(buffers_.d_memory[0], 0), key));
        kernels::accumulate(buffers_.d_value, of_chunk(part(buffers_.d_memory[0], 1), key));
      });
      arrive();
      if (!is_last) receive(buffers_.memory);
    }
    if (place_.members > 1) {  // one turn more, and they are where they belong
      ring_.begin(buffers_.d_memory[0].span(), buffers_.d_memory[1].span());
      receive(buffers_.d_memory);
    }
    kernels::copy(part(buffers_.d_memory[0], 0), gradients.key);
    kernels::copy(part(buffers_.d_memory[0], 1), gradients.value);
  }

 private:
  // Keys (0) or values (1) of a member.
  static View<float> part(Tensor<float>& memory, std::int64_t index) {
    return memory.view()[index];
  }

  void receive(Tensor<float> (&pair)[2]) {
    ring_.finish();
    std::swap(pair[0], pair[1]);
  }

  // Calls body(query chunk, key chunk, input) for the chunks of own queries and those of the keys
  // at hand that they see any of.
  template <class Body>
  void for_each_pair(int turn, Body&& body) {
    const int source = place_.source(turn);
    for (std::int64_t query = 0; query < RingPlace::chunks; ++query) {
      for (std::int64_t key = 0; key < RingPlace::chunks; ++key) {
        const std::int64_t query_start = place_.start(place_.member, query);
        const std::int64_t key_start = place_.start(source, key);
        if (!sees(query_start, key_start)) continue;
        body(query, key, pair_input(query, query_start, key, key_start));
        ring_.advance();
      }
    }
  }

  bool sees(std::int64_t query_start, std::int64_t key_start) const {
    if (input_.mask == kernels::Mask::full) return true;
    if (key_start > query_start) return false;
    const std::int64_t key_end = key_start + place_.chunk_length();
    return input_.window == 0 || key_end > query_start - input_.window + 1;
  }

  kernels::AttentionInput<float> pair_input(std::int64_t query, std::int64_t query_start,
                                            std::int64_t key, std::int64_t key_start) const {
    kernels::AttentionInput<float> input = input_;
    input.query = of_chunk(input_.query, query);
    input.key = of_chunk(part(buffers_.memory[0], 0), key);
    input.value = of_chunk(part(buffers_.memory[0], 1), key);
    if (input.mask == kernels::Mask::causal) input.query_offset = query_start - key_start;
    // The kernel takes queries for the last ones of the sequence.
    input.dropout =
        kernels::from_row(input_.dropout, query_start + place_.chunk_length() - place_.positions);
    input.dropout.first_column = static_cast<std::uint32_t>(key_start);
    return input;
  }

  KeyValueRing& ring_;
  const RingPlace& place_;
  RingBuffers& buffers_;
  const kernels::AttentionInput<float>& input_;
};

}  // namespace

void attend_around_ring(const LayerPass& at, const kernels::AttentionInput<float>& input,
                        View<float> mixed, View<float> log_sum_exp) {
  Round(at, input).forward(mixed, log_sum_exp);
}

void attend_around_ring_backward(const LayerPass& at, const kernels::AttentionInput<float>& input,
                                 View<const float> mixed, View<const float> log_sum_exp,
                                 View<const float> d_mixed,
                                 const kernels::AttentionGradients<float>& gradients) {
  Round(at, input).backward(mixed, log_sum_exp, d_mixed, gradients);
}

}  // namespace heed
