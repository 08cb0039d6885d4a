// BartForConditionalGeneration: learned positions, and a norm of the embedding.
#include "formats/bart_like.h"

namespace heed {
namespace {
namespace bart {

Architecture read(const ConfigFields& fields) {
  // One embedding serves both stacks and the unembedding.
  fields.need({"normalize_embedding", "tie_word_embeddings"});
  fields.refuse({"static_position_embeddings"});
  Architecture architecture = read_bart_like(fields);
  in_both(architecture, [](StackSpecification& stack) { stack.embedding_norm = true; });
  read_special_tokens(fields, architecture);
  return architecture;
}

OrderedJson write(const Architecture& architecture) {
  return write_bart_like(architecture, "bart", "BartForConditionalGeneration");
}

bool expresses(const Architecture& architecture) {
  return architecture.is_encoder_decoder() && reads_as_written(&read, &write, architecture);
}

bool is_buffer(std::string_view) { return false; }

}  // namespace bart
}  // namespace

const Format& bart_format() {
  static const Format format{.name = "bart",
                             .model_types = {"bart"},
                             .prefix = "model.",
                             .is_encoder_decoder = true,
                             .expresses = &bart::expresses,
                             .read = &bart::read,
                             .write = &bart::write,
                             .tensors = &bart_like_tensors,
                             .is_buffer = &bart::is_buffer};
  return format;
}

}  // namespace heed
