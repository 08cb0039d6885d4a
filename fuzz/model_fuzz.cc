// Loads models from arbitrary weights: a fixed small config, in each of the formats that a file may
// have, also with bytes changed in the file that heed itself writes; and reads arbitrary configs of
// each family, of one stack or two. A file is loaded, and the model computes, or it is refused with
// an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "formats/format.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"

namespace {

constexpr const char* formats[] = {"", R"(,"heed":{"dtype":"bf16"})", R"(,"heed":{"dtype":"int8"})",
                                   R"(,"heed":{"dtype":"int4"})"};
constexpr const char* with_embedding =
    R"(,"heed":{"dtype":"int8","embedding":"int8","arithmetic":"f32"})";

enum class Embedding { f32, rounded };

std::string config_with(const char* format) {
  return std::string(
             R"({"model_type":"gpt2","vocab_size":3,"n_positions":2,"n_embd":2,"n_layer":1,)"
             R"("n_head":1,"n_inner":3)") +
         format + "}";
}

// What the configs of encoders and encoder-decoders need.
constexpr const char* toy_fields =
    R"("vocab_size":3,"d_model":2,"d_kv":1,"d_ff":3,"num_layers":1,"num_heads":2,"encoder_layers":1,)"
    R"("decoder_layers":1,"encoder_attention_heads":1,"decoder_attention_heads":2,)"
    R"("encoder_ffn_dim":3,"decoder_ffn_dim":3,"max_position_embeddings":4,"hidden_size":2,)"
    R"("num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":3,)";

// A file as save_transformer writes it for this config, with its elements filled by repeating
// `data`.
std::string file_with(const std::string& header, std::span<const std::uint8_t> data,
                      std::size_t elements) {
  const std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  for (std::size_t i = 0; i < elements; ++i) {
    file += data.empty() ? '\0' : static_cast<char>(data[i % data.size()]);
  }
  return file;
}

// The safetensors header of the model's tensors in `format`, and their size in bytes.
class Header {
 public:
  explicit Header(std::string format, Embedding embedding = Embedding::f32)
      : format_(std::move(format)) {
    if (embedding == Embedding::f32) {
      plain("wte.weight", 3, 2);
    } else {
      integers("wte.weight", 3, 2);
    }
    plain("wpe.weight", 2, 2);
    for (const std::string norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
      add(norm + ".weight", "F32", "2", 8);
      add(norm + ".bias", "F32", "2", 8);
    }
    matrix("h.0.attn.c_attn", 6, 2);
    matrix("h.0.attn.c_proj", 2, 2);
    matrix("h.0.mlp.c_fc", 3, 2);
    matrix("h.0.mlp.c_proj", 2, 3);
  }
  std::string text() const { return "{" + text_ + "}"; }
  std::size_t bytes() const { return bytes_; }

 private:
  void add(const std::string& name, const char* dtype, const std::string& shape,
           std::size_t bytes) {
    text_ += (text_.empty() ? "" : ",") + ("\"" + name) + R"(":{"dtype":")" + dtype +
             R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(bytes_) + "," +
             std::to_string(bytes_ + bytes) + "]}";
    bytes_ += bytes;
  }
  void plain(const std::string& name, std::size_t rows, std::size_t columns) {
    add(name, "F32", std::to_string(rows) + "," + std::to_string(columns), rows * columns * 4);
  }
  void integers(const std::string& name, std::size_t outputs, std::size_t inputs) {
    const std::string rows = std::to_string(outputs) + ",";
    const std::size_t row = format_ == "int8" ? inputs : (inputs + 1) / 2;
    add(name + "." + format_, format_ == "int8" ? "I8" : "U8", rows + std::to_string(row),
        outputs * row);
    add(name + ".scales", "BF16", rows + "1", outputs * 2);
  }
  void matrix(const std::string& stem, std::size_t outputs, std::size_t inputs) {
    const std::string name = stem + ".weight";
    if (format_ == "int8" || format_ == "int4") {
      integers(name, outputs, inputs);
    } else {
      const std::size_t size = format_ == "bf16" ? 2 : 4;
      add(name, format_ == "bf16" ? "BF16" : "F32",
          std::to_string(inputs) + "," + std::to_string(outputs), outputs * inputs * size);
    }
    add(stem + ".bias", "F32", std::to_string(outputs), outputs * 4);
  }

  std::string format_;
  std::string text_;
  std::size_t bytes_ = 0;
};

constexpr std::size_t max_computed = 1 << 16;  // bytes of a file

// As a model of `format`, or of one stack.
void load(const std::string& config, std::span<const std::byte> weights,
          const heed::Format* format = nullptr) {
  const heed::ModelBytes files{"input", config, weights};
  heed::fuzz::allow_errors(
      {heed::ErrorCode::corrupt_data, heed::ErrorCode::unsupported,
       heed::ErrorCode::invalid_argument},  // not finite
      [&] {
        if (format != nullptr && format->is_encoder_decoder) {
          heed::load_transformer(heed::StacksWanted::two, files);
        } else {
          const heed::Transformer transformer =
              heed::load_transformer(heed::StacksWanted::one, files);
          if (weights.size() < max_computed && transformer.specification().is_causal()) {
            const std::int32_t tokens[] = {0};
            heed::testing::full_logits(transformer, tokens);
          }
        }
      });
}

struct Files {
  std::string config, weights;
};

// A model in each format, as it is saved.
const std::vector<Files>& saved_models() {
  static const std::vector<Files> models = [] {
    std::vector<Files> saved;
    for (int format = 0; format < 4; ++format) {
      const heed::testing::TemporaryDirectory directory;
      const heed::Transformer transformer =
          heed::testing::random_transformer(heed::make_gpt_config(1, 1, 3, 2, 3));
      heed::save_transformer(transformer, directory.path(), {},
                             static_cast<heed::kernels::WeightFormat>(format));
      saved.push_back({heed::read_text_file(directory / heed::config_file_name),
                       heed::read_text_file(directory / heed::weights_file_name)});
    }
    return saved;
  }();
  return models;
}

// Changes bytes of a saved file: two for the place and one for the value; 0xFFFF cuts it.
void load_changed(const Files& saved, std::span<const std::uint8_t> changes) {
  std::string weights = saved.weights;
  for (std::size_t i = 0; i + 2 < changes.size() && !weights.empty(); i += 3) {
    const std::size_t place = changes[i] | static_cast<std::size_t>(changes[i + 1]) << 8;
    if (place == 0xFFFF) {
      weights.resize(weights.size() * changes[i + 2] / 256);
    } else {
      weights[place % weights.size()] = static_cast<char>(changes[i + 2]);
    }
  }
  load(saved.config, std::as_bytes(std::span(weights)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(data, size);
  constexpr const char* names[] = {"f32", "bf16", "int8", "int4"};
  for (std::size_t format = 0; format < 4; ++format) {
    const std::string config = config_with(formats[format]);
    load(config, std::as_bytes(input));
    const Header header(names[format]);
    const std::string file = file_with(header.text(), input, header.bytes());
    load(config, std::as_bytes(std::span(file)));
  }
  const Header rounded("int8", Embedding::rounded);
  const std::string file = file_with(rounded.text(), input, rounded.bytes());
  load(config_with(with_embedding), std::as_bytes(std::span(file)));
  for (const Files& saved : saved_models()) load_changed(saved, input);
  const std::string fields(reinterpret_cast<const char*>(data), size);
  for (const heed::Format& format : heed::formats()) {
    for (const std::string_view type : format.model_types) {
      const std::string begin = R"({"model_type":")" + std::string(type) + R"(",)";
      load(begin + fields, {}, &format);
      // A toy of the family, to which the input adds fields.
      const std::string toy = begin + toy_fields + fields;
      load(toy, {}, &format);
      load(toy, std::as_bytes(input), &format);
    }
  }
  return 0;
}
