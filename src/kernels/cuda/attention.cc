// Attention on a device, of one sequence or of many in one launch. Which kernel computes a query
// depends on the length of its pass, its precision and its head, never on what else is computed.
#include "kernels/cuda/attention_operands.h"

#include <algorithm>
#include <optional>

#include "kernels/backends.h"
#include "kernels/cache_checks.h"
#include "kernels/dropout_hash.h"

namespace heed::kernels {
namespace {

// Passes of so few positions read the memory in parts: all queries of a key head together. Tiles
// would leave most of their rows empty, and most of the device.
constexpr std::int64_t few_positions = 16;
// In so short a pass nothing is rounded to bf16.
constexpr std::int64_t unrounded_positions = 3;

// Positions of a part of the memory: it depends on the memory alone, so that results do not depend
// on the batch. 32 parts of a long memory fill a device with few heads.
constexpr std::int64_t min_part = 128;
constexpr std::int64_t max_part = 1024;
constexpr std::int64_t wanted_parts = 32;

// Queries, and keys, of a block: of products in f32, and of tensor cores.
constexpr std::int64_t tile_rows = 64;
constexpr std::int64_t bf16_rows = 128;
// Larger heads than these are rounded to bf16, but multiplied in f32.
constexpr int largest_bf16_head = 256;
constexpr int largest_bf16_head_backward = 128;
constexpr int no_window = 1 << 30;
// Blocks in the second dimension of a grid.
constexpr std::size_t longest_list = 65535;

std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }
int to_int(std::int64_t value) { return static_cast<int>(value); }

HeedRowType row_type(CacheType type) {
  switch (type) {
    case CacheType::f32: break;
    case CacheType::bf16: return HEED_ROWS_BF16;
    case CacheType::int8: return HEED_ROWS_INT8;
  }
  return HEED_ROWS_F32;
}

// What is the same for memories of all types.
template <class Input>
HeedAttention without_memory(const Input& input, std::int64_t memory, std::int64_t key_heads) {
  const Shape& query = input.query.shape();
  require(std::max(memory, query[1]) < no_window, ErrorCode::unsupported,
          "attention of {} queries to {} positions on a device", query[1], memory);
  HeedAttention plain{};
  plain.query = cuda::plain_heads(input.query);
  plain.batch = to_int(query[0]);
  plain.queries = to_int(query[1]);
  plain.memory = to_int(memory);
  plain.heads = to_int(query[2]);
  plain.group = key_heads > 0 ? to_int(query[2] / key_heads) : 1;
  plain.head_size = to_int(query[3]);
  const bool causal = input.mask == Mask::causal;
  plain.visible = to_int(causal ? memory - query[1] + checks::query_offset_of(input) : memory);
  plain.window =
      input.window == 0 ? no_window : to_int(std::min<std::int64_t>(input.window, no_window));
  plain.scale = input.scale;
  plain.soft_cap = input.soft_cap;
  if (input.position_bias.present()) {
    const auto& values = input.position_bias.values;
    plain.bias = values.data();
    plain.bias_head = values.stride(0);
    plain.bias_first = to_int(input.position_bias.first);
    plain.bias_count = to_int(values.extent(1));
  }
  plain.dropout.kept = 1.0F;
  return plain;
}

std::int64_t positions_of(const auto& input) {
  return input.positions == 0 ? input.query.extent(1) : input.positions;
}

}  // namespace

HeedAttention cuda::plain_attention(const AttentionInput<float>& input) {
  HeedAttention plain = without_memory(input, input.key.extent(1), input.key.extent(2));
  plain.key = plain_heads(input.key);
  plain.value = plain_heads(input.value);
  const std::int64_t positions = positions_of(input);
  plain.rounds = input.precision == Precision::bf16 && positions > unrounded_positions ? 1 : 0;
  if (input.dropout.rate > 0.0F) {
    plain.dropout = {.key = input.dropout.key,
                     .first_column = input.dropout.first_column,
                     .threshold = dropout_threshold(input.dropout.rate),
                     .kept = 1.0F - input.dropout.rate};
  }
  plain.row_step = positions;
  plain.first_row = positions - input.query.extent(1);
  return plain;
}

namespace {

// Sequences that one kernel computes in one launch.
struct Launched {
  std::vector<HeedAttention> sequences;
  HeedRowType type = HEED_ROWS_F32;
  int extras = 0;
  std::int64_t block_rows = tile_rows;
  std::optional<cuda::Uploaded<HeedAttention>> uploaded{};  // once they are complete, if several

  const HeedAttention* on_device() {
    if (sequences.size() <= 1) return nullptr;
    if (!uploaded.has_value()) uploaded.emplace(std::span<const HeedAttention>(sequences));
    return uploaded->data();
  }
};

// A cap, a bias or dropout.
bool has_extras(const HeedAttention& a) {
  return a.soft_cap > 0.0F || a.bias != nullptr || a.dropout.threshold != 0;
}

bool uses_tensor_cores(const HeedAttention& a, int largest_head) {
  return a.rounds != 0 && a.head_size <= largest_head;
}

using AttendList = cuda::Function<HeedAttentionList>;

// Calls the function for the list. `blocks` counts those of a sequence.
template <class Blocks>
void launch_list(const AttendList& function, Launched& launched, Blocks&& blocks) {
  const std::span<const HeedAttention> all = launched.sequences;
  for (std::size_t first = 0; first < all.size(); first += longest_list) {
    const auto some = all.subspan(first, std::min(longest_list, all.size() - first));
    HeedAttentionList list{};
    list.one = some[0];
    list.count = static_cast<int>(some.size());
    list.type = launched.type;
    list.extras = launched.extras;
    for (const HeedAttention& each : some) {
      list.head_size = std::max(list.head_size, each.head_size);
      list.blocks = std::max(list.blocks, to_int(blocks(each)));
      list.rows = std::max(list.rows, each.group * each.queries);
      list.part = std::max(list.part, each.part);
      list.parts = std::max(list.parts, each.parts);
    }
    if (list.blocks == 0) continue;
    const HeedAttention* const many = launched.on_device();
    list.many = many == nullptr ? nullptr : many + first;
    function(list);
  }
}

// How many blocks share the queries of a sequence.
std::int64_t query_blocks(const HeedAttention& a, std::int64_t block_rows) {
  return std::int64_t{a.batch} * a.heads * divide_up(a.queries, block_rows);
}

void launch_query_blocks(const AttendList& function, Launched& launched) {
  if (launched.sequences.empty()) return;
  if (DeviceRecording* const recording = DeviceRecording::current()) recording->limit(1);
  launch_list(function, launched,
              [&](const HeedAttention& a) { return query_blocks(a, launched.block_rows); });
}

struct Parts {
  std::int64_t length, count;
  bool operator==(const Parts&) const = default;
};

// Of what few queries see of a memory that is `longer` than theirs.
Parts parts_of(const HeedAttention& a, std::int64_t longer) {
  const std::int64_t visible = a.visible + longer;
  const std::int64_t begin = std::max<std::int64_t>(visible - a.window + 1, 0);
  const std::int64_t end = std::clamp<std::int64_t>(visible + a.queries, 0, a.memory + longer);
  const std::int64_t seen = std::max<std::int64_t>(end - begin, 0);
  const std::int64_t length = std::clamp(
      divide_up(divide_up(seen, wanted_parts), tile_rows) * tile_rows, min_part, max_part);
  return {length, std::max<std::int64_t>(divide_up(seen, length), 1)};
}

// For how many repetitions, each with a position more, the memory has the same parts; at most as
// many as a part has positions.
std::int64_t repetitions_of(const HeedAttention& a, const Parts& parts) {
  std::int64_t same = 1, different = parts.length + 1;
  while (different - same > 1) {
    const std::int64_t middle = (same + different) / 2;
    (parts_of(a, middle - 1) == parts ? same : different) = middle;
  }
  return same;
}

void divide_memory(HeedAttention& a) {
  const Parts parts = parts_of(a, 0);
  a.part = to_int(parts.length);
  a.parts = to_int(parts.count);
  DeviceRecording* const recording = DeviceRecording::current();
  if (recording == nullptr) return;
  a.repetition = recording->repetition();
  // A bias of distances would have to move, too.
  recording->limit(a.bias == nullptr ? repetitions_of(a, parts) : 1);
}

std::int64_t partial_floats(const HeedAttention& a) {
  return std::int64_t{a.batch} * a.heads * a.queries * a.parts * (a.head_size + 2);
}

void launch_few_queries(Launched& launched) {
  std::int64_t floats = 0;
  for (HeedAttention& each : launched.sequences) {
    divide_memory(each);
    if (each.parts > 1) floats += partial_floats(each);
  }
  const cuda::Scratch<float> partial(floats);
  float* place = partial.data();
  for (HeedAttention& each : launched.sequences) {
    if (each.parts == 1) continue;
    each.partial = place;
    place += partial_floats(each);
  }
  static const AttendList attend("attention_parts_forward");
  launch_list(attend, launched, [](const HeedAttention& a) {
    return std::int64_t{a.batch} * (a.heads / a.group) * a.parts;
  });
  if (floats == 0) return;
  static const AttendList merge("attention_merge_parts");
  launch_list(merge, launched, [](const HeedAttention& a) {
    return a.partial == nullptr ? 0 : std::int64_t{a.batch} * a.heads * a.queries;
  });
}

// Sequences by the kernel that computes them.
class ForwardCalls {
 public:
  void add(HeedAttention plain, HeedRowType type, std::int64_t positions, const View<float>& out,
           const View<float>& log_sum_exp) {
    if (out.size() == 0) return;
    plain.out = cuda::plain_heads(out);
    plain.log_sum_exp = log_sum_exp.data();
    const bool few = positions <= (plain.rounds != 0 ? unrounded_positions : few_positions);
    Launched& launched = few ? few_[type]
                         : uses_tensor_cores(plain, largest_bf16_head)
                             ? bf16_[has_extras(plain) ? 1 : 0]
                             : tiles_[type];
    launched.type = type;
    launched.sequences.push_back(plain);
  }

  void launch() {
    for (Launched& launched : few_) {
      if (!launched.sequences.empty()) launch_few_queries(launched);
    }
    static const AttendList in_tiles("attention_tiles_forward"), in_bf16("attention_bf16_forward");
    for (Launched& launched : tiles_) launch_query_blocks(in_tiles, launched);
    for (Launched& launched : bf16_) launch_query_blocks(in_bf16, launched);
  }

 private:
  Launched few_[3], tiles_[3];
  Launched bf16_[2] = {{.block_rows = bf16_rows}, {.extras = 1, .block_rows = bf16_rows}};
};

void add_call(ForwardCalls& calls, const AttentionInput<float>& input, const View<float>& out,
              const View<float>& log_sum_exp) {
  checks::attention_output(input, out, log_sum_exp, "out");
  calls.add(cuda::plain_attention(input), HEED_ROWS_F32, positions_of(input), out, log_sum_exp);
}

void add_call(ForwardCalls& calls, const QuantisedCacheAttention& input, const View<float>& out,
              const View<float>& log_sum_exp) {
  checks::cache_attention(input, out, log_sum_exp);
  HeedAttention plain = without_memory(input, input.key.rows.extent(1), input.key.rows.extent(2));
  const std::int64_t bytes = cache_row_bytes(input.key.type, 1);
  plain.key = cuda::plain_heads(input.key.rows, bytes);
  plain.value = cuda::plain_heads(input.value.rows, bytes);
  if (input.key.type == CacheType::int8) {
    plain.key_scales = cuda::plain_heads(input.key.scales);
    plain.value_scales = cuda::plain_heads(input.value.scales);
  }
  calls.add(plain, row_type(input.key.type), positions_of(input), out, log_sum_exp);
}

}  // namespace

void cuda::attention_forward(const AttentionInput<float>& input, View<float> out,
                             View<float> log_sum_exp) {
  ForwardCalls calls;
  add_call(calls, input, out, log_sum_exp);
  calls.launch();
}

void cuda::attention_forward(const QuantisedCacheAttention& input, View<float> out,
                             View<float> log_sum_exp) {
  ForwardCalls calls;
  add_call(calls, input, out, log_sum_exp);
  calls.launch();
}

void cuda::attention_forward(std::span<const SequenceAttention> sequences) {
  ForwardCalls calls;
  for (const SequenceAttention& sequence : sequences) {
    if (sequence.is_quantised()) {
      add_call(calls, sequence.to_cache(), sequence.out, sequence.log_sum_exp);
    } else {
      add_call(calls, sequence.input, sequence.out, sequence.log_sum_exp);
    }
  }
  calls.launch();
}

namespace {

// Adds the gradient of the bias by the distances of a sequence's scores.
void add_bias_gradient(const HeedAttention& a, std::int64_t block_rows,
                       const View<float>& gradient) {
  static const cuda::Function<HeedBiasGradient> add("attention_bias_gradient");
  add({.partial = a.partial_bias,
       .gradient = gradient.data(),
       .head = gradient.stride(0),
       .element = gradient.stride(1),
       .batch = a.batch,
       .heads = a.heads,
       .blocks = to_int(divide_up(a.queries, block_rows)),
       .width = a.bias_width,
       .block_rows = to_int(block_rows),
       .distances = a.bias_count,
       .first_place = a.bias_first + a.memory - a.queries + to_int(block_rows) - 1});
}

void launch_backward(Launched& launched, const View<float>& d_bias) {
  std::int64_t rows = 0, bias_sums = 0;
  for (HeedAttention& each : launched.sequences) {
    rows += std::int64_t{each.batch} * each.heads * each.queries;
    if (!d_bias.present()) continue;
    each.bias_width = to_int(divide_up(each.memory, tile_rows) * tile_rows + launched.block_rows);
    bias_sums += query_blocks(each, launched.block_rows) * each.bias_width;
  }
  const cuda::Scratch<float> inner(rows), partial_bias(bias_sums);
  float *inner_place = inner.data(), *bias_place = partial_bias.data();
  for (HeedAttention& each : launched.sequences) {
    each.inner = inner_place;
    inner_place += std::int64_t{each.batch} * each.heads * each.queries;
    if (!d_bias.present()) continue;
    each.partial_bias = bias_place;
    bias_place += query_blocks(each, launched.block_rows) * each.bias_width;
  }
  constexpr std::int64_t inner_rows = 8;  // of a block
  static const AttendList multiply("attention_inner_products");
  launch_list(multiply, launched, [](const HeedAttention& a) {
    return divide_up(std::int64_t{a.batch} * a.heads * a.queries, inner_rows);
  });
  const auto key_blocks = [&](const HeedAttention& a) {
    return std::int64_t{a.batch} * (a.heads / a.group) * divide_up(a.memory, launched.block_rows);
  };
  if (launched.block_rows == bf16_rows) {
    static const AttendList of_memory("attention_bf16_memory_gradients");
    static const AttendList of_queries("attention_bf16_query_gradients");
    launch_list(of_memory, launched, key_blocks);
    launch_query_blocks(of_queries, launched);
  } else {
    static const AttendList of_memory("attention_memory_gradients");
    static const AttendList of_queries("attention_query_gradients");
    launch_list(of_memory, launched, key_blocks);
    launch_query_blocks(of_queries, launched);
  }
  if (!d_bias.present()) return;
  for (const HeedAttention& each : launched.sequences) {
    if (each.queries > 0) add_bias_gradient(each, launched.block_rows, d_bias);
  }
}

class BackwardCalls {
 public:
  void add(const HeedAttention& plain) {
    if (plain.batch * plain.heads == 0) return;
    (uses_tensor_cores(plain, largest_bf16_head_backward) ? bf16_[has_extras(plain) ? 1 : 0]
                                                          : tiles_)
        .sequences.push_back(plain);
  }

  void launch(const View<float>& d_bias) {
    for (Launched* const launched : {&tiles_, &bf16_[0], &bf16_[1]}) {
      if (!launched->sequences.empty()) launch_backward(*launched, d_bias);
    }
  }

 private:
  Launched tiles_;
  Launched bf16_[2] = {{.block_rows = bf16_rows}, {.extras = 1, .block_rows = bf16_rows}};
};

HeedAttention backward_call(const AttentionInput<float>& input, const View<const float>& out,
                            const View<const float>& log_sum_exp, const View<const float>& d_out,
                            const AttentionGradients<float>& gradients) {
  checks::attention_output(input, out, log_sum_exp, "out");
  checks::heads(d_out, input.query.shape(), "d_out");
  checks::attention_gradients(input, gradients);
  HeedAttention plain = cuda::plain_attention(input);
  plain.out = cuda::plain_heads(out);
  plain.log_sum_exp = const_cast<float*>(log_sum_exp.data());
  plain.d_out = cuda::plain_heads(d_out);
  plain.d_query = cuda::plain_heads(gradients.query);
  plain.d_key = cuda::plain_heads(gradients.key);
  plain.d_value = cuda::plain_heads(gradients.value);
  return plain;
}

}  // namespace

void cuda::attention_backward(const AttentionInput<float>& input, View<const float> out,
                              View<const float> log_sum_exp, View<const float> d_out,
                              const AttentionGradients<float>& gradients) {
  const HeedAttention plain = backward_call(input, out, log_sum_exp, d_out, gradients);
  BackwardCalls calls;
  calls.add(plain);
  calls.launch(gradients.position_bias);
}

void cuda::attention_backward(std::span<const SequenceAttentionBackward> sequences) {
  const bool share_a_table = std::ranges::any_of(
      sequences, [](const auto& sequence) { return sequence.gradients.position_bias.present(); });
  BackwardCalls calls;
  for (const SequenceAttentionBackward& each : sequences) {
    if (share_a_table) {
      cuda::attention_backward(each.input, each.out, each.log_sum_exp, each.d_out, each.gradients);
      continue;
    }
    calls.add(backward_call(each.input, each.out, each.log_sum_exp, each.d_out, each.gradients));
  }
  calls.launch({});
}

void cuda::merge_attention(const AttentionPart<float>& part, View<float> out,
                           View<float> log_sum_exp) {
  checks::attention_part(part, out, log_sum_exp);
  static const Function<HeedMergedParts> merge("merge_attention");
  if (out.size() == 0) return;
  merge({.part = plain_heads(part.out),
         .out = plain_heads(out),
         .part_log_sum_exp = part.log_sum_exp.data(),
         .log_sum_exp = log_sum_exp.data(),
         .batch = to_int(out.extent(0)),
         .queries = to_int(out.extent(1)),
         .heads = to_int(out.extent(2)),
         .head_size = to_int(out.extent(3))});
}

}  // namespace heed::kernels
