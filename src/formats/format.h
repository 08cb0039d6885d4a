// A checkpoint format: how a family of models is described in config.json, and which tensors of its
// files hold which parameters. One file a family; no other file knows a checkpoint's tensor name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/config_fields.h"
#include "model/architecture.h"
#include "model/roles.h"
#include "tensor/tensor.h"

namespace heed {

// How a file keeps the rows of a parameter.
enum class Storage {
  straight,    // [out, in], as in memory
  transposed,  // [in, out]
  // query_key_value as (G, H/G + 2, D, C): the queries that share a key, that key, and its value
  heads_interleaved,
  one_row,         // a vector (out) as [1, out]
  pairs_adjacent,  // rows (H, D) with the two channels that rotate as a pair side by side
  less_one,        // a norm's gain less 1
};

// A tensor of a file, and the rows of a parameter that it holds.
struct StoredTensor {
  std::string name;
  ParameterId parameter;
  Shape shape;                 // in memory: of these rows
  std::int64_t first_row = 0;  // of the parameter
  Storage storage = Storage::straight;
  // Other names of the same tensor. A file holds it under any of them; all that are there must be
  // equal. It is written under its first name.
  std::vector<std::string> aliases{};
  // Rows of the file's tensor before these, which nothing reads; written as zeros.
  std::int64_t unused_rows = 0;
  bool may_be_absent = false;  // the parameter is then zero
  // Where several parameters are one tensor, one below the other: how many rows it has. Each says
  // so under the same name, in the order of the rows. 0: the tensor holds these rows alone.
  std::int64_t joined_rows = 0;
  std::int64_t first_joined_row = 0;  // of these
  // The tensor of another parameter that is read where a file has none of these names.
  std::string otherwise{};
};

// Clang's WebAssembly target declares functions by a wrong type where only their addresses are
// taken and what they return has not been instantiated: `tensors` below.
static_assert(sizeof(std::vector<StoredTensor>) > 0);

// A tensor that files may hold although it is computed: it must be equal, and is not written.
struct ComputedTensor {
  std::string name;
  std::function<Tensor<float>()> values;
};

struct Format {
  std::string_view name;
  std::vector<std::string_view> model_types;  // of config.json
  // Names in a file may begin with it or not.
  std::string_view prefix;
  bool is_encoder_decoder = false;
  // Whether a config.json of this format can say all that the model is.
  std::function<bool(const Architecture& architecture)> expresses;
  // Throw Error{corrupt_data} for a missing or impossible value and Error{unsupported} for an
  // option that heed would compute differently.
  std::function<Architecture(const ConfigFields& fields)> read;
  std::function<OrderedJson(const Architecture& architecture)> write;
  // All tensors of a file, in the order in which they are written. One whose parameter the model
  // does not have is written as zeros, and is absent or zero where it is read.
  std::function<std::vector<StoredTensor>(const Architecture& architecture)> tensors;
  // Tensors that files may hold beside parameters: masks, frequencies, heads for other tasks.
  bool (*is_buffer)(std::string_view name);
  // None, where a format has no such function.
  std::function<std::vector<ComputedTensor>(const Architecture& architecture)> computed{};
  std::string_view described_by = "config.json";  // what a file's tensors are compared with
};

// The same of a family of decoders, which says what it is of one stack.
struct DecoderFormat {
  std::string_view name;
  std::vector<std::string_view> model_types;
  std::string_view prefix;
  bool (*expresses)(const StackSpecification& stack);
  StackSpecification (*read)(const ConfigFields& fields);
  OrderedJson (*write)(const StackSpecification& stack);
  std::vector<StoredTensor> (*tensors)(const StackSpecification& stack);
  bool (*is_buffer)(std::string_view name);
  // A stack of the family without what only it has, which other families cannot express; null where
  // there is no such thing.
  StackSpecification (*usual)(StackSpecification stack) = nullptr;
};
// Adds what all of them have in common: norms before their branches, no options of encoders, and a
// tied unembedding that files may repeat.
Format of_decoders(const DecoderFormat& decoders);

// In the order in which save looks for one that expresses a model.
std::span<const Format> formats();

const Format& gpt2_format();
const Format& llama_format();
const Format& mistral_format();
const Format& qwen2_format();
const Format& qwen3_format();
const Format& neox_format();
const Format& starcoder2_format();
const Format& gpt_neo_format();
const Format& opt_format();
const Format& olmo2_format();
const Format& phi3_format();
const Format& gemma2_format();
const Format& gemma3_format();
const Format& falcon_format();
const Format& bert_format();
const Format& marian_format();
const Format& bart_format();
const Format& t5_format();
const Format& translator_format();  // heed's own

// The format of a config.json by its model_type. Throws Error{unsupported} naming the known types.
const Format& format_of_config(const ConfigFields& fields);
// The first format that expresses the model. Throws Error{unsupported} where none does.
const Format& format_of(const Architecture& architecture);
const Format& format_of_stack(const StackSpecification& stack);

// What a config.json describes, in its format; valid. Throws as Format::read does.
Architecture read_described(const Format& format, const ConfigFields& fields);

// Where a model of another number of stacks is expected. Both throw Error{unsupported}.
void require_one_stack(const Format& format, const std::string& source);
void require_encoder_decoder(const Format& format, const std::string& source);

}  // namespace heed
