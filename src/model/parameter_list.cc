// Which parameters a description asks for, in the order of the arena, and how they are divided.
#include <algorithm>

#include "model/parameters.h"

namespace heed {

std::vector<Parameter> parameters_of(const StackSpecification& stack) {
  stack.validate();
  const auto& [norm, attention, cross_attention, feed_forward, residual] = stack.block;
  const std::int64_t c = stack.channels, f = feed_forward.width;
  std::vector<Parameter> list;
  std::int64_t layer = -1;
  const auto add = [&](Role role, const Shape& shape, bool has_bias) {
    list.push_back({{role, Part::weight, layer}, shape});
    if (has_bias) list.push_back({{role, Part::bias, layer}, Shape{shape[0]}});
  };
  add(Role::token_embedding, {stack.vocabulary_size, c}, false);
  if (stack.has_position_table()) add(Role::position_embedding, {stack.context, c}, false);
  if (stack.token_types > 0) add(Role::token_type_embedding, {stack.token_types, c}, false);
  if (attention.positions == PositionKind::relative) {
    add(Role::position_bias, {attention.relative.buckets, attention.query_heads}, false);
  }
  if (stack.embedding_norm) add(Role::embedding_norm, {c}, norm.bias);
  for (layer = 0; layer < stack.layers; ++layer) {
    const bool norms_stream = stack.has_input_norms() || stack.is_post_norm();
    if (norms_stream) add(Role::norm_1, {c}, norm.bias);
    add(Role::query_key_value, {attention.projected_width(), c}, attention.query_bias);
    if (attention.query_key_norm) {
      const auto width = [&normed = stack.block.attention](std::int64_t heads) {
        return normed.heads_of_norm(heads) * normed.head_size;
      };
      add(Role::query_norm, {width(attention.query_heads)}, false);
      add(Role::key_norm, {width(attention.key_value_heads)}, false);
    }
    add(Role::attention_output, {c, attention.query_width()}, attention.output_bias);
    if (stack.has_output_norms()) add(Role::attention_out_norm, {c}, norm.bias);
    if (cross_attention) {
      const std::int64_t a = cross_attention->query_width();
      const std::int64_t k = cross_attention->key_value_width();
      add(Role::cross_norm, {c}, norm.bias);
      add(Role::cross_query, {a, c}, cross_attention->query_bias);
      add(Role::cross_key_value, {2 * k, c}, cross_attention->query_bias);
      add(Role::cross_output, {c, a}, cross_attention->output_bias);
    }
    if (norms_stream && !stack.shares_norm()) add(Role::norm_2, {c}, norm.bias);
    if (feed_forward.gated) add(Role::gate, {f, c}, feed_forward.bias);
    add(Role::up, {f, c}, feed_forward.bias);
    add(Role::down, {c, f}, feed_forward.bias);
    if (stack.has_output_norms()) add(Role::feed_forward_out_norm, {c}, norm.bias);
  }
  layer = -1;
  if (stack.final_norm) add(Role::final_norm, {c}, norm.bias);
  if (stack.prediction_head) {
    add(Role::prediction, {c, c}, true);
    add(Role::prediction_norm, {c}, norm.bias);
  }
  if (stack.has_unembedding && !stack.tied_unembedding) {
    add(Role::unembedding, {stack.vocabulary_size, c}, false);
  }
  if (stack.unembedding_bias) {
    list.push_back({{Role::unembedding, Part::bias}, Shape{stack.vocabulary_size}});
  }
  return list;
}

std::vector<Parameter> parameters_of(const Architecture& architecture) {
  architecture.validate();
  std::vector<Parameter> list;
  for (std::size_t index = 0; index < architecture.stacks.size(); ++index) {
    for (Parameter& parameter : parameters_of(architecture.stacks[index])) {
      if (index > 0 && architecture.shared_embedding &&
          parameter.id.role == Role::token_embedding) {
        continue;
      }
      parameter.id.site = architecture.site(index);
      list.push_back(parameter);
    }
  }
  return list;
}

ArenaLayout parameter_layout(const Architecture& architecture) {
  ArenaLayout layout;
  for (const Parameter& parameter : parameters_of(architecture)) {
    layout.add(parameter_name(parameter.id), parameter.shape);
  }
  return layout;
}

bool is_table(const ParameterId& id) {
  return id.part == Part::weight &&
         (id.role == Role::token_embedding || id.role == Role::unembedding);
}

ParameterPart part_of(const ParameterId& id, const Architecture& architecture,
                      std::int64_t piece_rows) {
  const bool is_after_blocks = id.role == Role::final_norm || id.role == Role::prediction ||
                               id.role == Role::prediction_norm || id.role == Role::unembedding;
  return {.site = id.site,
          .layer = is_after_blocks ? architecture.of(id.site).layers : id.layer,
          .piece = piece_rows > 0 && is_table(id) ? 0 : -1};
}

std::vector<PartRange> part_ranges(const Architecture& architecture, std::int64_t piece_rows) {
  const std::vector<Parameter> list = parameters_of(architecture);
  const ArenaLayout layout = parameter_layout(architecture);
  std::vector<PartRange> ranges;
  const auto begin_part = [&](const ParameterPart& part, std::int64_t begin) {
    if (!ranges.empty()) ranges.back().end = static_cast<std::size_t>(begin);
    ranges.push_back({part, static_cast<std::size_t>(begin), 0});
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    ParameterPart part = part_of(list[i].id, architecture, piece_rows);
    const ArenaLayout::Entry& entry = layout.entries()[i];
    if (part.piece < 0) {
      if (ranges.empty() || ranges.back().part != part) begin_part(part, entry.offset);
      continue;
    }
    for (std::int64_t row = 0; row < entry.shape[0]; row += piece_rows, ++part.piece) {
      begin_part(part, entry.offset + row * entry.shape[1]);
    }
  }
  if (!ranges.empty()) ranges.back().end = static_cast<std::size_t>(layout.size());
  return ranges;
}

std::int64_t table_piece_rows(const Architecture& architecture) {
  constexpr std::int64_t least = std::int64_t{1} << 20;  // numbers: pieces are sent one by one
  std::int64_t block = least;
  for (const PartRange& range : part_ranges(architecture)) {
    const std::int64_t layers = architecture.of(range.part.site).layers;
    if (range.part.layer < 0 || range.part.layer == layers) continue;
    block = std::max(block, static_cast<std::int64_t>(range.end - range.begin));
  }
  std::int64_t rows = 0;
  for (const Parameter& parameter : parameters_of(architecture)) {
    if (!is_table(parameter.id)) continue;
    const std::int64_t pieces = (parameter.shape.size() + block - 1) / block;
    if (pieces > 1) rows = std::max(rows, (parameter.shape[0] + pieces - 1) / pieces);
  }
  return rows;
}

}  // namespace heed
