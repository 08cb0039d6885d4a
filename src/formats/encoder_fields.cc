#include "formats/encoder_fields.h"

#include <algorithm>

namespace heed {
namespace {

void round_digits(float& value) { value = static_cast<float>(short_decimal(value)); }

// Without values of fields that do not apply.
Architecture canonical(Architecture architecture) {
  for (StackSpecification& stack : architecture.stacks) {
    drop_unused(stack.block.attention);
    if (stack.block.cross_attention) drop_unused(*stack.block.cross_attention);
    stack.end_of_text = architecture.decoder().end_of_text;
    if (!stack.has_unembedding) {
      stack.tied_unembedding = true;
      stack.unembedding_bias = false;
    }
    round_digits(stack.initial_deviation);
    round_digits(stack.embedding_dropout);
    round_digits(stack.attention_dropout);
    round_digits(stack.residual_dropout);
    round_digits(stack.block.norm.epsilon);
  }
  return architecture;
}

}  // namespace

void drop_unused(AttentionSpecification& attention) {
  if (attention.positions != PositionKind::rotary) attention.rotary = {};
  if (attention.positions != PositionKind::relative) attention.relative = {};
  if (attention.positions != PositionKind::sinusoidal) attention.sinusoids = {};
}

void set_encoder(StackSpecification& stack) {
  stack.role = StackRole::encoder;
  stack.has_unembedding = false;
  stack.block.attention.mask = {.kind = MaskKind::full};
}

AttentionSpecification cross_attention_like(const AttentionSpecification& attention) {
  AttentionSpecification cross = attention;
  cross.mask = {.kind = MaskKind::full};
  cross.positions = PositionKind::none;
  drop_unused(cross);
  return cross;
}

void set_heads(const ConfigFields& fields, const char* heads_key, StackSpecification& stack) {
  AttentionSpecification& attention = stack.block.attention;
  attention.query_heads = attention.key_value_heads = fields.integer(heads_key);
  require_config_extents(
      fields, {{"channels", stack.channels}, {"heads", attention.query_heads, max_heads}});
  require(stack.channels % attention.query_heads == 0, ErrorCode::corrupt_data,
          "{}: {} channels are not a multiple of {} {}", fields.source(), stack.channels, heads_key,
          attention.query_heads);
  attention.head_size = stack.channels / attention.query_heads;
}

bool reads_as_written(Architecture (*read)(const ConfigFields& fields),
                      OrderedJson (*write)(const Architecture& architecture),
                      const Architecture& architecture) {
  try {
    const ConfigFields fields(Json(write(architecture)), "config.json");
    return canonical(read(fields)) == canonical(architecture);
  } catch (const Error&) {
    return false;  // it wrote what it does not read
  }
}

const char* part_name(Part part) { return part == Part::weight ? "weight" : "bias"; }

void append_apart(std::vector<StoredTensor>& stored, const Parameter& parameter,
                  const AttentionSpecification& attention, const std::string& stem,
                  const std::array<const char*, 3>& names) {
  const bool has_query = parameter.id.role == Role::query_key_value;
  std::int64_t first = 0;
  for (std::size_t index = has_query ? 0 : 1; index < names.size(); ++index) {
    const std::int64_t rows = index == 0 ? attention.query_width() : attention.key_value_width();
    stored.push_back(
        {.name = fmt::format("{}.{}.{}", stem, names[index], part_name(parameter.id.part)),
         .parameter = parameter.id,
         .shape = parameter.id.part == Part::weight ? Shape{rows, parameter.shape[1]} : Shape{rows},
         .first_row = first});
    first += rows;
  }
}

std::vector<StoredTensor> tensors_with_projections_apart(
    const StackSpecification& stack, std::string (*stem)(const ParameterId& id)) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(stack)) {
    const std::string name = stem(parameter.id);
    if (parameter.id.role == Role::query_key_value) {
      append_apart(stored, parameter, stack.block.attention, name, {"q_proj", "k_proj", "v_proj"});
      continue;
    }
    stored.push_back({.name = fmt::format("{}.{}", name, part_name(parameter.id.part)),
                      .parameter = parameter.id,
                      .shape = parameter.shape});
  }
  return stored;
}

}  // namespace heed
