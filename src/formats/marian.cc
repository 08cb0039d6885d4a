// MarianMTModel: sinusoidal positions, sines before cosines. And heed's own translators, which have
// the same fields and tensors, and what Marian's config.json cannot express under the key `heed`:
// norms before their branches, learned and relative positions, or none. Other programs would read
// them as another function, so they have a type of their own. Files that call them `marian`, as
// heed once did, are read.
#include "formats/bart.h"
#include "model/stack.h"

namespace heed {
namespace {
namespace marian {

// The table of sinusoids has a row for each position that the config allows, whatever the size of
// the file.
constexpr std::int64_t max_positions = std::int64_t{1} << 17;

NormPlacement read_placement(const ConfigFields& own) {
  const std::string name = own.text_or("norm_placement", "post");
  require(name == "pre" || name == "post", ErrorCode::corrupt_data,
          "{}: 'norm_placement' must be \"pre\" or \"post\", not \"{}\"", own.source(), name);
  return name == "pre" ? NormPlacement::pre : NormPlacement::post;
}

SinusoidOrder read_order(const ConfigFields& own) {
  const std::string name = own.text_or("sinusoids", "halves");
  require(name == "halves" || name == "interleaved", ErrorCode::corrupt_data,
          "{}: 'sinusoids' must be \"halves\" or \"interleaved\", not \"{}\"", own.source(), name);
  return name == "halves" ? SinusoidOrder::halves : SinusoidOrder::interleaved;
}

PositionKind read_positions(const ConfigFields& own) {
  const std::string name = own.text_or("positions", "sinusoidal");
  for (const PositionKind kind : {PositionKind::sinusoidal, PositionKind::learned,
                                  PositionKind::relative, PositionKind::none}) {
    if (name == position_kind_name(kind)) return kind;
  }
  fail(ErrorCode::corrupt_data,
       "{}: 'positions' must be \"sinusoidal\", \"learned\", \"relative\" or \"none\", not \"{}\"",
       own.source(), name);
}

void read_own(const ConfigFields& own, StackSpecification& stack) {
  stack.block.norm.placement = read_placement(own);
  stack.block.norm.epsilon = own.number_or("norm_epsilon", 1e-5F);
  stack.final_norm = own.boolean_or("final_norm", false);
  AttentionSpecification& attention = stack.block.attention;
  attention.positions = read_positions(own);
  attention.sinusoids = read_order(own);
  if (attention.positions == PositionKind::relative) {
    attention.relative = {.buckets = own.integer_or("relative_buckets", 32),
                          .max_distance = own.integer_or("relative_distance", 128),
                          .both_directions = stack.role == StackRole::encoder};
  }
  stack.embedding_dropout = own.number_or("embedding_dropout", stack.residual_dropout);
  if (stack.has_unembedding) stack.unembedding_bias = own.boolean_or("head_bias", true);
}

Architecture read(const ConfigFields& fields) {
  const ConfigFields own = fields.object_or_empty("heed");
  fields.refuse({"normalize_embedding"});
  if (read_positions(own) == PositionKind::sinusoidal) fields.need({"static_position_embeddings"});
  require_config_extents(fields,
                         {{"context", fields.integer("max_position_embeddings"), max_positions}});
  Architecture architecture = read_bart_like(fields);
  StackSpecification& decoder = architecture.stacks.back();
  architecture.shared_embedding = fields.boolean_or("share_encoder_decoder_embeddings", true);
  decoder.vocabulary_size = fields.integer_or("decoder_vocab_size", decoder.vocabulary_size);
  in_both(architecture, [&](StackSpecification& stack) { read_own(own, stack); });
  read_special_tokens(fields, architecture);
  return architecture;
}

// What Marian's own fields do not say.
OrderedJson own_options(const StackSpecification& decoder) {
  const bool is_marian = decoder.is_post_norm() && !decoder.final_norm &&
                         decoder.unembedding_bias &&
                         decoder.block.attention.sinusoids == SinusoidOrder::halves;
  OrderedJson own = OrderedJson::object();
  if (!is_marian) {
    own["norm_placement"] = decoder.is_post_norm() ? "post" : "pre";
    own["final_norm"] = decoder.final_norm;
    own["sinusoids"] =
        decoder.block.attention.sinusoids == SinusoidOrder::halves ? "halves" : "interleaved";
    own["head_bias"] = decoder.unembedding_bias;
  }
  const AttentionSpecification& attention = decoder.block.attention;
  if (attention.positions != PositionKind::sinusoidal) {
    own["positions"] = position_kind_name(attention.positions);
  }
  if (attention.positions == PositionKind::relative) {
    own["relative_buckets"] = attention.relative.buckets;
    own["relative_distance"] = attention.relative.max_distance;
  }
  if (decoder.block.norm.epsilon != 1e-5F) {
    own["norm_epsilon"] = short_decimal(decoder.block.norm.epsilon);
  }
  if (decoder.embedding_dropout != decoder.residual_dropout) {
    own["embedding_dropout"] = short_decimal(decoder.embedding_dropout);
  }
  return own;
}

OrderedJson write_as(const Architecture& architecture, const char* model_type,
                     const char* class_name) {
  OrderedJson json = write_bart_like(architecture, model_type, class_name);
  json["share_encoder_decoder_embeddings"] = architecture.shared_embedding;
  json["decoder_vocab_size"] = architecture.decoder().vocabulary_size;
  if (architecture.decoder().block.attention.positions != PositionKind::sinusoidal) {
    json["static_position_embeddings"] = false;
  }
  const OrderedJson own = own_options(architecture.decoder());
  if (!own.empty()) json["heed"] = own;
  return json;
}

OrderedJson write(const Architecture& architecture) {
  return write_as(architecture, "marian", "MarianMTModel");
}

OrderedJson write_own(const Architecture& architecture) {
  return write_as(architecture, "heed_translator", "HeedTranslator");
}

bool expresses_own(const Architecture& architecture) {
  return architecture.is_encoder_decoder() && reads_as_written(&read, &write_own, architecture);
}

bool expresses(const Architecture& architecture) {
  return expresses_own(architecture) && own_options(architecture.decoder()).empty();
}

// Files of other programs hold the tables of sines.
std::vector<ComputedTensor> sinusoids(const Architecture& architecture) {
  std::vector<ComputedTensor> computed;
  if (architecture.decoder().block.attention.positions != PositionKind::sinusoidal) return computed;
  for (const StackSite site : {StackSite::encoder, StackSite::decoder}) {
    const StackSpecification& stack = architecture.of(site);  // copied into the function
    computed.push_back({fmt::format("model.{}embed_positions.weight", site_prefix(site)),
                        [stack] { return sinusoid_table(stack); }});
  }
  return computed;
}

bool is_buffer(std::string_view) { return false; }

}  // namespace marian
}  // namespace

const Format& marian_format() {
  static const Format format{.name = "marian",
                             .model_types = {"marian"},
                             .prefix = "model.",
                             .is_encoder_decoder = true,
                             .expresses = &marian::expresses,
                             .read = &marian::read,
                             .write = &marian::write,
                             .tensors = &bart_like_tensors,
                             .is_buffer = &marian::is_buffer,
                             .computed = &marian::sinusoids};
  return format;
}

const Format& translator_format() {
  static const Format format = [] {
    Format own = marian_format();
    own.name = "heed_translator";
    own.model_types = {"heed_translator"};
    own.expresses = &marian::expresses_own;
    own.write = &marian::write_own;
    return own;
  }();
  return format;
}

}  // namespace heed
