#include "formats/format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/rotary.h"

namespace heed {
namespace {

// Whether the stack is what decoders without an encoder have in common.
bool is_decoder(const StackSpecification& stack) {
  return stack.role == StackRole::decoder && stack.is_causal() && !stack.is_post_norm() &&
         !stack.block.cross_attention && stack.embedding_scale == 1.0F && !stack.embedding_norm &&
         stack.token_types == 0 && stack.final_norm && stack.has_unembedding &&
         stack.logit_scale == 1.0F && stack.logit_cap == 0.0F && !stack.prediction_head &&
         !stack.has_output_norms() && !stack.shares_norm() &&
         stack.block.attention.head_norms == HeadNormExtent::each_head &&
         stack.block.attention.rotary.local_base == 0;
}

// The tensors of a file, which may hold a tied unembedding under its own name too.
std::vector<StoredTensor> with_tied_unembedding(const DecoderFormat& decoders,
                                                const StackSpecification& stack) {
  std::vector<StoredTensor> stored = decoders.tensors(stack);
  if (!stack.tied_unembedding) return stored;
  StackSpecification untied = stack;
  untied.tied_unembedding = false;
  for (const StoredTensor& tensor : decoders.tensors(untied)) {
    if (tensor.parameter != ParameterId{Role::unembedding}) continue;
    const auto embedding =
        std::ranges::find(stored, ParameterId{Role::token_embedding}, &StoredTensor::parameter);
    embedding->aliases.push_back(tensor.name);
  }
  return stored;
}

RotaryScaling* dynamic_scaling(StackSpecification& stack) {
  AttentionSpecification& attention = stack.block.attention;
  const bool is_dynamic = attention.rotary.scaling.kind == RotaryScalingKind::dynamic;
  return is_dynamic && turns_by_length(attention) ? &attention.rotary.scaling : nullptr;
}

// A config names the context of pretraining; with a dynamic scaling, texts may be longer.
StackSpecification with_dynamic_context(StackSpecification stack) {
  RotaryScaling* const scaling = dynamic_scaling(stack);
  const bool grows = scaling != nullptr && scaling->factor >= 1 && stack.context >= 1;
  if (!grows) return stack;  // what is impossible is refused later
  scaling->original_context = stack.context;
  const double longest = static_cast<double>(stack.context) * scaling->factor;
  stack.context =
      longest < static_cast<double>(max_extent) ? static_cast<std::int64_t>(longest) : max_extent;
  return stack;
}

StackSpecification with_original_context(StackSpecification stack) {
  if (RotaryScaling* const scaling = dynamic_scaling(stack)) {
    stack.context = std::exchange(scaling->original_context, 0);
  }
  return stack;
}

void validate_document(const ConfigFields& fields, const Architecture& architecture) {
  try {
    architecture.validate();
  } catch (const Error& error) {
    fail(ErrorCode::corrupt_data, "{}: {}", fields.source(), error.what());
  }
}

}  // namespace

Format of_decoders(const DecoderFormat& decoders) {
  return {.name = decoders.name,
          .model_types = decoders.model_types,
          .prefix = decoders.prefix,
          .expresses =
              [decoders](const Architecture& architecture) {
                if (architecture.is_encoder_decoder()) return false;
                const StackSpecification& stack = architecture.decoder();
                return is_decoder(decoders.usual != nullptr ? decoders.usual(stack) : stack) &&
                       decoders.expresses(stack);
              },
          .read = [decoders](const ConfigFields& fields) -> Architecture {
            return {.stacks = {with_dynamic_context(decoders.read(fields))}};
          },
          .write =
              [decoders](const Architecture& architecture) {
                return decoders.write(with_original_context(architecture.decoder()));
              },
          .tensors =
              [decoders](const Architecture& architecture) {
                return with_tied_unembedding(decoders, architecture.decoder());
              },
          .is_buffer = decoders.is_buffer};
}

std::span<const Format> formats() {
  static const std::array all{
      gpt2_format(),   llama_format(),      mistral_format(), qwen2_format(),     qwen3_format(),
      neox_format(),   starcoder2_format(), gpt_neo_format(), opt_format(),       olmo2_format(),
      phi3_format(),   gemma2_format(),     gemma3_format(),  falcon_format(),    bert_format(),
      marian_format(), bart_format(),       t5_format(),      translator_format()};
  return all;
}

const Format& format_of_config(const ConfigFields& fields) {
  const std::string type = fields.text_or("model_type", "gpt2");
  std::vector<std::string_view> known;
  for (const Format& format : formats()) {
    if (std::ranges::count(format.model_types, type) > 0) return format;
    known.insert(known.end(), format.model_types.begin(), format.model_types.end());
  }
  fail(ErrorCode::unsupported, "{}: model_type is '{}'; heed reads models of type {}",
       fields.source(), type, fmt::join(known, ", "));
}

const Format& format_of(const Architecture& architecture) {
  for (const Format& format : formats()) {
    if (format.expresses(architecture)) return format;
  }
  fail(ErrorCode::unsupported,
       "no known checkpoint format can express this architecture: it cannot be saved");
}

const Format& format_of_stack(const StackSpecification& stack) {
  return format_of({.stacks = {stack}});
}

Architecture read_described(const Format& format, const ConfigFields& fields) {
  Architecture architecture = format.read(fields);
  validate_document(fields, architecture);
  return architecture;
}

void require_one_stack(const Format& format, const std::string& source) {
  require(!format.is_encoder_decoder, ErrorCode::unsupported,
          "{}: a '{}' model is an encoder and a decoder; expected a model of one stack (heed "
          "translate runs encoder-decoders)",
          source, format.name);
}

void require_encoder_decoder(const Format& format, const std::string& source) {
  require(format.is_encoder_decoder, ErrorCode::unsupported,
          "{}: a '{}' model has one stack; expected an encoder and a decoder (marian, bart, t5)",
          source, format.name);
}

}  // namespace heed
