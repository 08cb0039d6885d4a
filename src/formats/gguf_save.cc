#include "formats/gguf_save.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/bf16.h"
#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "checkpoint/block_packing.h"
#include "checkpoint/gguf_writer.h"
#include "formats/encoder_fields.h"
#include "formats/gguf_config.h"
#include "formats/gguf_families.h"
#include "formats/gguf_tokenizer.h"
#include "formats/pooling.h"
#include "formats/stored_tensors.h"
#include "formats/text_ends.h"

namespace heed {
namespace {

struct WeightsName {
  GgufWeights weights;
  std::string_view name;
  std::uint32_t file_type;  // `general.file_type`
};
constexpr std::array weights_names = {
    WeightsName{GgufWeights::f32, "f32", 0},    WeightsName{GgufWeights::f16, "f16", 1},
    WeightsName{GgufWeights::bf16, "bf16", 32}, WeightsName{GgufWeights::q8_0, "q8_0", 7},
    WeightsName{GgufWeights::q4_0, "q4_0", 2},  WeightsName{GgufWeights::q4_k_m, "q4_k_m", 15}};

const WeightsName& row_of(GgufWeights weights) {
  return *std::ranges::find(weights_names, weights, &WeightsName::weights);
}

// Where rows are no whole blocks of a type.
BlockType fallback(BlockType type) {
  switch (type) {
    case BlockType::q4_k: return BlockType::q5_0;
    case BlockType::q5_k: return BlockType::q5_1;
    case BlockType::q6_k: return BlockType::q8_0;
    default: return BlockType::f16;
  }
}

bool divides(BlockType type, std::int64_t row) { return row % block_layout(type).values == 0; }

// A matrix that is multiplied or looked up; not a table that is added.
bool is_rounded(const std::string& name, const Shape& shape) {
  const bool is_added = name == "position_embd.weight" || name == "token_types.weight" ||
                        name.find("attn_rel_b") != std::string::npos;
  return shape.rank() == 2 && name.ends_with("weight") && !is_added;
}

// Numbers as they come become blocks, many at a time.
class Packer {
 public:
  Packer(BlockType type, const ByteSink& sink) : type_(type), sink_(sink) {
    waiting_.reserve(chunk);
  }

  void take(std::span<const std::byte> bytes) {
    check(bytes.size() % sizeof(float) == 0, "whole numbers are handed over");
    while (!bytes.empty()) {
      const std::size_t count = std::min(chunk - waiting_.size(), bytes.size() / sizeof(float));
      const std::size_t before = waiting_.size();
      waiting_.resize(before + count);
      std::memcpy(waiting_.data() + before, bytes.data(), count * sizeof(float));
      bytes = bytes.subspan(count * sizeof(float));
      if (waiting_.size() == chunk) pass_on();
    }
  }

  void pass_on() {
    const BlockLayout layout = block_layout(type_);
    const std::int64_t blocks = std::ssize(waiting_) / layout.values;
    check(blocks * layout.values == std::ssize(waiting_), "rows are whole blocks");
    std::vector<std::byte> packed(static_cast<std::size_t>(blocks * layout.bytes));
    parallel_ranges(blocks, grain / layout.values, [&](std::int64_t begin, std::int64_t end) {
      const auto range = [&](auto all, std::int64_t size) {
        return all.subspan(static_cast<std::size_t>(begin * size),
                           static_cast<std::size_t>((end - begin) * size));
      };
      pack_blocks(type_, range(std::span<const float>(waiting_), layout.values),
                  range(std::span(packed), layout.bytes));
    });
    sink_(packed);
    waiting_.clear();
  }

 private:
  static constexpr std::size_t chunk = std::size_t{1} << 20;  // numbers: whole blocks of each type
  static constexpr std::int64_t grain = 1 << 14;              // numbers a thread takes

  BlockType type_;
  const ByteSink& sink_;
  std::vector<float> waiting_;
};

OutgoingBlocks packed(OutgoingTensor tensor, BlockType type) {
  return {.name = tensor.name,
          .type = type,
          .shape = tensor.shape,
          .produce = [name = tensor.name, type,
                      produce = std::move(tensor.produce)](const ByteSink& sink) {
            try {
              Packer packer(type, sink);
              produce([&](std::span<const std::byte> bytes) { packer.take(bytes); });
              packer.pass_on();
            } catch (const Error& error) {
              if (error.code() != ErrorCode::unsupported) throw;
              fail(ErrorCode::unsupported, "'{}': {}", name, error.what());
            }
          }};
}

bool is_factors_name(std::string_view name) {
  return name == gguf_rotary_factors || name == gguf_short_factors || name == gguf_long_factors;
}

OutgoingBlocks factors_tensor(RotaryFactors tensor) {
  const auto size = static_cast<std::int64_t>(tensor.factors.size());
  return {.name = std::string(tensor.name),
          .type = BlockType::f32,
          .shape = {size},
          .produce = [factors = std::move(tensor.factors)](const ByteSink& sink) {
            sink(std::as_bytes(std::span(factors)));
          }};
}

// Factors are written in f32.
void keep_longrope(RotarySpecification& rotary) {
  RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind != RotaryScalingKind::longrope) return;
  scaling.attention_factor = static_cast<float>(scaling.attention_factor);
  for (std::vector<double>* const factors : {&scaling.short_factors, &scaling.long_factors}) {
    for (double& factor : *factors) factor = static_cast<float>(factor);
  }
}

// Gemma's, which files leave to √C as it is.
void keep_embedding_scale(StackSpecification& stack) {
  const float exact = std::sqrt(static_cast<float>(stack.channels));
  if (stack.embedding_scale == bf16_to_f32(f32_to_bf16(exact))) stack.embedding_scale = exact;
}

// What a file does not keep: how a model is trained, and numbers beyond the digits of f32.
Architecture kept(Architecture architecture) {
  for (StackSpecification& stack : architecture.stacks) {
    const StackSpecification usual;
    keep_embedding_scale(stack);
    stack.initial_deviation = usual.initial_deviation;
    stack.embedding_dropout = stack.attention_dropout = stack.residual_dropout = 0;
    stack.end_of_text = -1;
    stack.block.norm.epsilon = static_cast<float>(short_decimal(stack.block.norm.epsilon));
    for (AttentionSpecification* attention :
         {&stack.block.attention,
          stack.block.cross_attention ? &*stack.block.cross_attention : nullptr}) {
      if (attention == nullptr) continue;
      drop_unused(*attention);
      attention->rotary.base = static_cast<float>(attention->rotary.base);
      attention->rotary.local_base = static_cast<float>(attention->rotary.local_base);
      keep_longrope(attention->rotary);
    }
  }
  architecture.padding = architecture.decoder_start = -1;
  architecture.forced_first = architecture.forced_last = -1;
  architecture.other_ends.clear();
  return architecture;
}

// Throws Error{unsupported} unless reading the file's beginning gives the model.
void require_described(const Architecture& architecture, const GgufMetadata& metadata,
                       std::span<const OutgoingBlocks> tensors) {
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "the GGUF file");
  std::unordered_map<std::string_view, TensorEntry> entries;
  std::deque<std::vector<float>> all_factors;
  for (const OutgoingBlocks& tensor : tensors) {
    TensorEntry entry{.name = tensor.name,
                      .dtype = DType::f32,
                      .shape = tensor.shape,
                      .bytes = {},
                      .blocks = tensor.type};
    if (is_factors_name(tensor.name)) {
      std::vector<float>& factors = all_factors.emplace_back(tensor.shape.size());
      tensor.produce([&](std::span<const std::byte> produced) {
        std::memcpy(factors.data(), produced.data(), produced.size());
      });
      entry.bytes = std::as_bytes(std::span(factors));
    }
    entries.emplace(tensor.name, std::move(entry));
  }
  const Json config = gguf_config(file, [&](std::string_view name) -> const TensorEntry* {
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  });
  const ConfigFields fields(config, "the GGUF file");
  const Architecture read = read_described(format_of_config(fields), fields);
  require(kept(read) == kept(architecture), ErrorCode::unsupported,
          "a GGUF file of '{}' cannot say all that this model is: it would be read as another one; "
          "write a model directory instead",
          config["model_type"].get<std::string>());
}

GgufTokenRoles roles_of(const Architecture& architecture, const Json& config,
                        const Tokenizer* tokenizer) {
  const StackSpecification& decoder = architecture.decoder();
  const ConfigFields fields(config, config_file_name);
  GgufTokenRoles roles{.beginning = read_beginning_of_text(fields, decoder.vocabulary_size),
                       .end = decoder.end_of_text,
                       .padding = architecture.padding};
  if (tokenizer == nullptr) return roles;
  if (roles.beginning < 0) roles.beginning = tokenizer->beginning_of_text().value_or(-1);
  if (roles.end < 0) roles.end = tokenizer->end_of_text().value_or(-1);
  if (roles.beginning < 0) roles.beginning = roles.end;
  return roles;
}

}  // namespace

GgufWeights parse_gguf_weights(std::string_view name) {
  std::vector<std::string_view> names;
  for (const WeightsName& row : weights_names) {
    if (row.name == name) return row.weights;
    names.push_back(row.name);
  }
  fail(ErrorCode::invalid_argument, "'{}' is no type of a GGUF file's weights; expected one of {}",
       name, fmt::join(names, ", "));
}

std::string_view gguf_weights_name(GgufWeights weights) { return row_of(weights).name; }

// The first and last eighth of the layers, and every third between.
bool GgufTypes::takes_more_bits(std::int64_t layer) const {
  const std::int64_t eighth = layers_ / 8;
  return layer < eighth || layer >= 7 * layers_ / 8 || (layer - eighth) % 3 == 2;
}

BlockType GgufTypes::wanted(const std::string& name, std::int64_t row) {
  const bool is_medium = weights_ == GgufWeights::q4_k_m;
  const bool unembeds =
      name == "output.weight" || (unembedding_ == Unembedding::tied && name == "token_embd.weight");
  switch (weights_) {
    case GgufWeights::f32: return BlockType::f32;
    case GgufWeights::f16: return BlockType::f16;
    case GgufWeights::bf16: return BlockType::bf16;
    case GgufWeights::q8_0: return BlockType::q8_0;
    case GgufWeights::q4_0:
    case GgufWeights::q4_k_m: break;
  }
  if (unembeds) return divides(BlockType::q6_k, row) ? BlockType::q6_k : BlockType::q8_0;
  if (!is_medium) return BlockType::q4_0;
  if (name.find("attn_v.weight") != std::string::npos) {
    return takes_more_bits(values_++) ? BlockType::q6_k : BlockType::q4_k;
  }
  if (name.find("ffn_down") != std::string::npos) {
    const std::size_t layer = name.find("blk.") + 4;
    const std::int64_t number = std::stoll(name.substr(layer));
    return takes_more_bits(number) ? BlockType::q6_k : BlockType::q4_k;
  }
  return name.find("attn_qkv") != std::string::npos ? BlockType::q5_k : BlockType::q4_k;
}

BlockType GgufTypes::of(const std::string& name, const Shape& shape) {
  if (!is_rounded(name, shape)) return BlockType::f32;
  const std::int64_t row = shape[1];
  BlockType type = wanted(name, row);
  while (!divides(type, row)) type = fallback(type);
  return type;
}

void save_gguf(const Transformer& model, const std::filesystem::path& file,
               const SourceFiles& source, const GgufContent& content, GgufWeights weights) {
  const Architecture architecture = gguf_architecture(model.architecture());
  const WrittenConfig written = written_config(model.architecture(), source);
  Json config(written.format->write(architecture));
  config[pooling_field] = pooling_type_of(source);
  const std::string type = config["model_type"].get<std::string>();
  const GgufFamily* const family = find_gguf_family_of(type);
  require(family != nullptr, ErrorCode::unsupported,
          "heed does not write models of type '{}' as GGUF files: {}", type,
          architecture.is_encoder_decoder()
              ? "of encoder-decoders, the format has an architecture for T5 alone"
              : "it knows no architecture of the format for them");
  const StackSpecification& decoder = architecture.decoder();

  GgufMetadata metadata;
  metadata.add("general.architecture", family->architecture);
  metadata.add("general.name", std::string_view(content.name));
  metadata.add("general.file_type", row_of(weights).file_type);
  if (weights >= GgufWeights::q8_0) metadata.add("general.quantization_version", std::uint32_t{2});
  write_gguf_config(*family, config, architecture, metadata);
  const GgufTokenRoles roles = roles_of(architecture, Json(written.config), content.tokenizer);
  if (content.tokenizer != nullptr) {
    write_gguf_tokenizer(*content.tokenizer, decoder.vocabulary_size, roles, metadata);
  } else {
    metadata.add("tokenizer.ggml.model", std::string_view("none"));
  }
  if (!content.chat_template.empty()) {
    metadata.add("tokenizer.chat_template", std::string_view(content.chat_template));
  }

  const Format format = gguf_format(*family, *written.format);
  const StoredModel stored(format, architecture, {});
  std::deque<Tensor<float>> room;
  std::vector<OutgoingBlocks> tensors;
  const std::int64_t layers = architecture.is_encoder_decoder()
                                  ? architecture.encoder().layers + decoder.layers
                                  : decoder.layers;
  GgufTypes types(
      weights, layers,
      decoder.tied_unembedding ? GgufTypes::Unembedding::tied : GgufTypes::Unembedding::own);
  for (OutgoingTensor& tensor : stored.outgoing(model.parameters(), room)) {
    const BlockType block = types.of(tensor.name, tensor.shape);
    tensors.push_back(packed(std::move(tensor), block));
  }
  const AttentionSpecification& attention = decoder.block.attention;
  for (RotaryFactors& factors : rotary_factor_tensors(attention)) {
    tensors.push_back(factors_tensor(std::move(factors)));
  }
  require_described(architecture, metadata, tensors);

  const std::filesystem::path parent = file.parent_path();
  OutputDirectory made(parent.empty() ? "." : parent);
  AtomicFile out(file);
  write_gguf(out, metadata, tensors);
  out.commit();
  made.keep();
}

}  // namespace heed
