#include "model/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "tensor/pages.h"

namespace heed {
namespace {

// The tensor of an arena, whose entries are in the order of `list`; absent when the description
// does not ask for it. Allocates nothing: steps of training look tensors up.
template <class ArenaType>
auto find_view(ArenaType& arena, const ArenaLayout& layout, const std::vector<Parameter>& list,
               const ParameterId& id) {
  const auto found = std::ranges::find(list, id, &Parameter::id);
  const auto& entries = layout.entries();
  return found == list.end() ? decltype(arena.view(entries.front())){}
                             : arena.view(entries[static_cast<std::size_t>(found - list.begin())]);
}

template <class ArenaType>
auto view_of(ArenaType& arena, const ArenaLayout& layout, const std::vector<Parameter>& list,
             const ParameterId& id) {
  const auto view = find_view(arena, layout, list, id);
  if (!view.present()) {
    fail(ErrorCode::not_found, "the model has no parameter '{}'", parameter_name(id));
  }
  return view;
}

// Which parameter a stack uses for a role: the encoder's embedding where two stacks share it, and
// the embedding where it is the unembedding.
ParameterId used_parameter(const Architecture& architecture, const StackSpecification& stack,
                           ParameterId id) {
  if (id.role == Role::unembedding && id.part == Part::weight && stack.tied_unembedding) {
    id.role = Role::token_embedding;
  }
  const bool is_shared = architecture.is_encoder_decoder() && architecture.shared_embedding;
  if (id.role == Role::token_embedding && is_shared) id.site = StackSite::encoder;
  return id;
}

// The structs of a stack, from find(id), make_norm(gain, bias) and make_linear(weight, bias).
template <class Stack>
Stack bind_stack(const Architecture& architecture, std::size_t index, const auto& find_used,
                 const auto& make_norm, const auto& make_linear) {
  const StackSpecification& stack = architecture.stacks[index];
  const auto find = [&](Role role, Part part, std::int64_t layer) {
    return find_used(
        used_parameter(architecture, stack, {role, part, layer, architecture.site(index)}));
  };
  const auto table = [&](Role role) { return find(role, Part::weight, -1); };
  const auto bind = [&](const auto& make, Role role, std::int64_t layer = -1) {
    return make(find(role, Part::weight, layer), find(role, Part::bias, layer));
  };
  Stack bound{.token_embedding = table(Role::token_embedding),
              .position_embedding = table(Role::position_embedding),
              .token_type_embedding = table(Role::token_type_embedding),
              .position_bias = table(Role::position_bias),
              .embedding_norm = bind(make_norm, Role::embedding_norm),
              .final_norm = bind(make_norm, Role::final_norm),
              .prediction = bind(make_linear, Role::prediction),
              .prediction_norm = bind(make_norm, Role::prediction_norm),
              .schedule = {.site = architecture.site(index),
                           .layers = stack.layers,
                           .vocabulary = stack.vocabulary_size,
                           .embedding_site = used_parameter(architecture, stack,
                                                            {.role = Role::token_embedding,
                                                             .site = architecture.site(index)})
                                                 .site,
                           .tied_unembedding = stack.tied_unembedding}};
  if (stack.has_unembedding) bound.unembedding = bind(make_linear, Role::unembedding);
  if constexpr (requires { bound.unembedding.soft_cap; }) {  // parameters, not gradients
    bound.unembedding.soft_cap = stack.logit_cap;
  }
  const Role second_norm = stack.shares_norm() ? Role::norm_1 : Role::norm_2;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    bound.blocks.push_back(
        {.norm_1 = bind(make_norm, Role::norm_1, layer),
         .query_key_value = bind(make_linear, Role::query_key_value, layer),
         .query_norm = bind(make_norm, Role::query_norm, layer),
         .key_norm = bind(make_norm, Role::key_norm, layer),
         .projection = bind(make_linear, Role::attention_output, layer),
         .attention_out_norm = bind(make_norm, Role::attention_out_norm, layer),
         .cross_norm = bind(make_norm, Role::cross_norm, layer),
         .cross_query = bind(make_linear, Role::cross_query, layer),
         .cross_key_value = bind(make_linear, Role::cross_key_value, layer),
         .cross_output = bind(make_linear, Role::cross_output, layer),
         .norm_2 = bind(make_norm, second_norm, layer),
         .gate = bind(make_linear, Role::gate, layer),
         .up = bind(make_linear, Role::up, layer),
         .down = bind(make_linear, Role::down, layer),
         .feed_forward_out_norm = bind(make_norm, Role::feed_forward_out_norm, layer)});
  }
  return bound;
}

// Every matrix lies where it is read.
void touch_matrices(Arena<float>& arena, const ArenaLayout& layout) {
  for (const ArenaLayout::Entry& entry : layout.entries()) {
    if (entry.shape.rank() == 2) kernels::touch_pages(arena.view(entry));
  }
}

}  // namespace

Parameters::Parameters(const Architecture& architecture, ArenaMemory memory)
    : architecture_(architecture),
      list_(parameters_of(architecture)),
      layout_(parameter_layout(architecture)),
      arena_(layout_, memory) {
  bind_stacks();
  if (memory == ArenaMemory::whole) touch_matrices(arena_, layout_);
}

Parameters::Parameters(const Architecture& architecture, BlockWeights blocks)
    : architecture_(architecture),
      list_(parameters_of(architecture)),
      layout_(parameter_layout(architecture)),
      arena_(layout_, ArenaMemory::reserved),
      blocks_(std::move(blocks)) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (!blocks_.has(list_[i].id)) commit_pages_of(arena_.view(layout_.entries()[i]));
  }
  bind_stacks();
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const View<const float> view = arena_.view(layout_.entries()[i]);
    for (StackParameters& stack : stacks_) {
      if (stack.token_embedding.data() == view.data()) {
        stack.token_blocks = blocks_.table(list_[i].id);
      }
    }
    kernels::PreparedWeight* const multiplied = blocks_.multiplied(list_[i].id);
    if (multiplied == nullptr) continue;
    for (LinearWeights* linear : linears()) {
      if (linear->weight.data() == view.data()) linear->prepared = multiplied;
    }
  }
  prepared_format_ = blocks_.most_common_format();
  link_prepared();
}

namespace {

// All stacks, from find(id).
std::vector<StackParameters> bind_all(const Architecture& architecture, const auto& find) {
  require_runnable(architecture);
  const auto linear = [](View<float> weight, View<float> bias) {
    return LinearWeights{weight, bias};
  };
  std::vector<StackParameters> stacks;
  for (std::size_t index = 0; index < architecture.stacks.size(); ++index) {
    const float epsilon = architecture.stacks[index].block.norm.epsilon;
    const auto norm = [epsilon](View<float> gain, View<float> bias) {
      return NormWeights{gain, bias, epsilon};
    };
    stacks.push_back(bind_stack<StackParameters>(architecture, index, find, norm, linear));
  }
  return stacks;
}

}  // namespace

void Parameters::bind_stacks() {
  stacks_ = bind_all(architecture_,
                     [&](const ParameterId& id) { return find_view(arena_, layout_, list_, id); });
}

// Whether passes read a parameter as numbers: all but matrices that are multiplied as they are
// prepared.
bool Parameters::has_place(std::size_t index) const {
  const ParameterId& id = list_[index].id;
  if (blocks_.has(id) && !blocks_.is_restored(id)) return false;
  return prepared_.empty() || !is_linear(id.role) || id.part == Part::bias;
}

void Parameters::copy_placed(Arena<float>& from, const ArenaLayout& from_layout, Arena<float>& to,
                             const ArenaLayout& to_layout) const {
  for (const ArenaLayout::Entry& entry : placed_layout_.entries()) {
    kernels::copy(View<const float>(from.view(*from_layout.find(entry.name))),
                  to.view(*to_layout.find(entry.name)));
  }
}

void Parameters::place(Device device) {
  if (device.is_cpu()) {
    placed_stacks_.clear();
    placed_ = {};
    placed_layout_ = {};
    return;
  }
  check(packed_.empty(), "packed weights are the processor's");
  ArenaLayout layout;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const ArenaLayout::Entry& entry = layout_.entries()[i];
    if (has_place(i)) layout.add(entry.name, entry.shape);
  }
  if (!placed_.present() || layout.size() != placed_layout_.size()) {
    placed_ = {};  // before there is memory for another
    placed_layout_ = std::move(layout);
    placed_ = Arena<float>(placed_layout_, device);
  }
  copy_placed(arena_, layout_, placed_, placed_layout_);
  placed_stacks_ = bind_all(architecture_, [&](const ParameterId& id) {
    const View<float> here = find_view(arena_, layout_, list_, id);
    if (!here.present()) return here;
    const ArenaLayout::Entry* const there = placed_layout_.find(parameter_name(id));
    return there != nullptr ? placed_.view(*there) : here;
  });
  // What does not lie in arenas: how weights are prepared, multiplied and read.
  for (std::size_t index = 0; index < stacks_.size(); ++index) {
    placed_stacks_[index].token_blocks = stacks_[index].token_blocks;
    placed_stacks_[index].schedule = stacks_[index].schedule;
    const std::vector<LinearWeights*> here = linears_of(stacks_[index]);
    const std::vector<LinearWeights*> there = linears_of(placed_stacks_[index]);
    for (std::size_t i = 0; i < here.size(); ++i) {
      there[i]->prepared = here[i]->prepared;
      there[i]->precision = here[i]->precision;
    }
  }
}

void Parameters::fetch() {
  if (placed_.present()) copy_placed(placed_, placed_layout_, arena_, layout_);
}

void Parameters::restore_all() const {
  if (blocks_.empty()) return;
  for (const Parameter& parameter : list_) tensor(parameter.id);
}

std::span<float> Parameters::all() {
  restore_all();
  return arena_.all();
}

std::span<const float> Parameters::all() const {
  restore_all();
  return arena_.all();
}

void Parameters::set_schedule(ParameterSchedule* schedule, std::int64_t piece_rows) {
  for (std::vector<StackParameters>* stacks : {&stacks_, &placed_stacks_}) {
    for (StackParameters& stack : *stacks) {
      stack.schedule.schedule = schedule;
      stack.schedule.piece_rows = schedule != nullptr ? piece_rows : 0;
    }
  }
}

void Parameters::initialize(std::uint64_t seed) { initialize(seed, 0, all().size()); }

void Parameters::initialize(std::uint64_t seed, std::size_t begin, std::size_t end) {
  for (std::size_t index = 0; index < list_.size(); ++index) {
    const auto& [id, shape] = list_[index];
    const View<float> values = arena_.view(layout_.entries()[index]);
    const std::int64_t offset = layout_.entries()[index].offset;
    const std::int64_t size = shape.size();
    const auto clamped = [&](std::size_t at) {
      return std::clamp(static_cast<std::int64_t>(at), offset, offset + size) - offset;
    };
    const std::int64_t first = clamped(begin), last = clamped(end);
    if (first == last) continue;
    if (is_norm(id.role) || id.part == Part::bias) {
      kernels::fill(values.slice(0, first, last), id.part == Part::weight ? 1.0F : 0.0F);
      continue;
    }
    const StackSpecification& stack = architecture_.of(id.site);
    const float residual_scale = 1.0F / std::sqrt(2.0F * static_cast<float>(stack.layers));
    const float deviation =
        stack.initial_deviation * (writes_to_stream(id.role) ? residual_scale : 1.0F);
    // One random stream per row, so that the result does not depend on the number of threads.
    kernels::fill_normal(values, {.seed = seed,
                                  .first_stream = static_cast<std::uint64_t>(index) << 32,
                                  .deviation = deviation,
                                  .begin = first,
                                  .end = last});
  }
}

bool Parameters::has(const ParameterId& id) const {
  return find_view(arena_, layout_, list_, id).present();
}

View<float> Parameters::tensor(const ParameterId& id) {
  const View<float> view = view_of(arena_, layout_, list_, id);
  blocks_.restore(id, view);
  return view;
}

View<const float> Parameters::tensor(const ParameterId& id) const {
  return const_cast<Parameters*>(this)->tensor(id);  // restoring changes no number
}

View<const float> Parameters::restored(View<const float> parameter) const {
  if (blocks_.empty() || !parameter.present()) return parameter;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const View<const float> whole = arena_.view(layout_.entries()[i]);
    if (whole.data() <= parameter.data() && parameter.data() <= &whole.span().back()) {
      tensor(list_[i].id);
    }
  }
  return parameter;
}

double Parameters::squared_norm() const {
  if (blocks_.empty()) return kernels::squared_norm(all());
  double sum = 0;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const View<const float> view = arena_.view(layout_.entries()[i]);
    if (!blocks_.has(list_[i].id)) {
      sum += kernels::squared_norm(view.span());
      continue;
    }
    Tensor<float> matrix(view.shape());
    blocks_.read(list_[i].id, matrix);
    sum += kernels::squared_norm(matrix.span());
  }
  return sum;
}

std::int64_t Parameters::arena_bytes() const {
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const ParameterId& id = list_[i].id;
    if (!blocks_.has(id) || blocks_.is_restored(id)) numbers += list_[i].shape.size();
  }
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t Parameters::prepared_bytes() const {
  std::int64_t bytes = blocks_.bytes();
  for (const kernels::PreparedWeight& weight : prepared_) bytes += weight.bytes();
  return bytes;
}

void Parameters::set_precision(kernels::Precision precision) {
  for (std::vector<StackParameters>* stacks : {&stacks_, &placed_stacks_}) {
    for (StackParameters& stack : *stacks) {
      for (LinearWeights* linear : linears_of(stack)) linear->precision = precision;
    }
  }
}

bool is_multiplied(const Architecture& architecture, const ParameterId& id) {
  if (id.part != Part::weight) return false;
  const StackSpecification& last = architecture.decoder();
  const bool is_tied =
      id.role == Role::token_embedding && last.has_unembedding && last.tied_unembedding;
  return is_linear(id.role) || is_tied;
}

void Parameters::require_finite(kernels::WeightFormat format) const {
  for (const Parameter& parameter : list()) {
    if (!is_multiplied(architecture(), parameter.id)) continue;
    const std::optional<float> beyond =
        kernels::find_not_finite(tensor(parameter.id).span(), format);
    require(!beyond, ErrorCode::unsupported, "{} holds the weight {}, which is not finite in {}",
            parameter_name(parameter.id), beyond.value_or(0), kernels::weight_format_name(format));
  }
}

void Parameters::prepare(kernels::WeightFormat format) {
  restore_all();
  if (format != kernels::WeightFormat::f32) require_finite(format);
  std::vector<kernels::PreparedWeight> prepared;
  if (format != kernels::WeightFormat::f32) {
    std::int64_t bytes = 0;
    for (const LinearWeights* linear : linears()) {
      bytes += kernels::PreparedWeight::bytes_of(linear->weight.shape(), format);
    }
    kernels::WeightMemory memory(bytes);
    for (const LinearWeights* linear : linears()) {
      prepared.emplace_back(linear->weight, format, &memory);
    }
  }
  prepared_ = std::move(prepared);
  for (StackParameters& stack : stacks_) stack.token_blocks = nullptr;
  for (LinearWeights* linear : linears()) linear->prepared = nullptr;
  blocks_ = {};
  prepared_format_ = format;
  packed_.clear();
  std::size_t next = 0;
  for (LinearWeights* linear : linears()) {
    linear->prepared = prepared_.empty() ? nullptr : &prepared_[next++];
    linear->packed = nullptr;
  }
  link_prepared();
  if (placed_.present()) place(device());
}

// Each token uses the weights of a stack one after another, except those that project the memory to
// keys and values, which are used once per memory.
void Parameters::link_prepared() {
  for (StackParameters& stack : stacks_) {
    kernels::PreparedWeight* first = nullptr;
    kernels::PreparedWeight* last = nullptr;
    for (const LinearWeights* linear : linears_of(stack)) {
      if (linear->prepared == nullptr) continue;
      auto& weight = const_cast<kernels::PreparedWeight&>(*linear->prepared);  // own ones
      const bool is_of_memory = std::ranges::any_of(
          stack.blocks,
          [&](const BlockParameters& block) { return linear == &block.cross_key_value; });
      if (is_of_memory) continue;
      if (first == nullptr) first = &weight;
      if (last != nullptr) last->set_next(&weight);
      last = &weight;
    }
    if (last != nullptr) last->set_next(first);
  }
}

void Parameters::pack() {
  if (placed_.present() || prepared_format_ != kernels::WeightFormat::f32) return;
  packed_.clear();
  for (const LinearWeights* linear : linears()) packed_.emplace_back(linear->weight);
  std::size_t next = 0;
  for (LinearWeights* linear : linears()) linear->packed = &packed_[next++];
}

std::int64_t Parameters::packed_bytes(const StackSpecification& config) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : parameters_of(config)) {
    if (!is_multiplied({.stacks = {config}}, parameter.id)) continue;
    bytes += kernels::PackedWeight::bytes_needed(parameter.shape[0], parameter.shape[1]);
  }
  return bytes;
}

std::vector<LinearWeights*> Parameters::linears_of(StackParameters& stack) {
  std::vector<LinearWeights*> all;
  const auto add = [&](LinearWeights& linear) {
    if (linear.weight.present()) all.push_back(&linear);
  };
  for (BlockParameters& block : stack.blocks) {
    for (LinearWeights* linear :
         {&block.query_key_value, &block.projection, &block.cross_query, &block.cross_key_value,
          &block.cross_output, &block.gate, &block.up, &block.down}) {
      add(*linear);
    }
  }
  add(stack.prediction);
  add(stack.unembedding);
  return all;
}

std::vector<LinearWeights*> Parameters::linears() {
  std::vector<LinearWeights*> all;
  for (StackParameters& stack : stacks_) {
    for (LinearWeights* linear : linears_of(stack)) all.push_back(linear);
  }
  return all;
}

Gradients::Gradients(const Architecture& architecture, ArenaMemory memory, Device device)
    : architecture_(architecture),
      list_(parameters_of(architecture)),
      layout_(parameter_layout(architecture)),
      arena_(layout_, memory, device) {
  const auto norm = [](View<float> gain, View<float> bias) {
    return NormWeightGradients{gain, bias};
  };
  const auto linear = [](View<float> weight, View<float> bias) {
    return LinearWeightGradients{weight, bias};
  };
  const auto find = [&](const ParameterId& id) { return find_view(arena_, layout_, list_, id); };
  for (std::size_t index = 0; index < architecture.stacks.size(); ++index) {
    stacks_.push_back(bind_stack<StackGradients>(architecture, index, find, norm, linear));
  }
}

const StackSchedule& Parameters::schedule_of(const ParameterId& id) const {
  return stack(id.site).schedule;
}

void Gradients::set_schedule(ParameterSchedule* schedule, std::int64_t piece_rows) {
  for (StackGradients& stack : stacks_) {
    stack.schedule.schedule = schedule;
    stack.schedule.piece_rows = schedule != nullptr ? piece_rows : 0;
  }
}

void Gradients::clear() {
  const std::span<float> values = arena_.all();
  kernels::fill({values.data(), Shape{std::ssize(values)}}, 0.0F);
}

View<float> Gradients::tensor(const ParameterId& id) { return view_of(arena_, layout_, list_, id); }

}  // namespace heed
