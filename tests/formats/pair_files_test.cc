// Files of encoders and encoder-decoders: what is read, under which names, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "formats/format.h"
#include "formats/model_files.h"

namespace heed {
namespace {
namespace pair_files {

using testing::expect_error;
using testing::TemporaryDirectory;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/pairs" / name;
}

struct FileTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// A copy of a golden model, which a test changes before it is read.
class Files {
 public:
  explicit Files(const std::string& name)
      : config(read_config_document(golden(name) / config_file_name)) {
    const auto file = SafetensorsFile::open(golden(name) / weights_file_name);
    for (const TensorEntry& entry : file.tensors()) {
      if (entry.dtype != DType::f32) continue;  // positions in order, which nothing reads
      Tensor<float> values(entry.shape);
      read_as_f32(entry, values);
      tensors.push_back({entry.name, entry.shape, {values.span().begin(), values.span().end()}});
    }
  }

  FileTensor& tensor(const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &FileTensor::name);
    require(found != tensors.end(), ErrorCode::not_found, "no stored '{}'", name);
    return *found;
  }
  void remove(const std::string& name) {
    ASSERT_EQ(std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; }), 1U);
  }
  void copy(const std::string& name, const std::string& other) {
    FileTensor copied = tensor(name);
    copied.name = other;
    tensors.push_back(std::move(copied));
  }

  void write(const std::filesystem::path& directory) const {
    write_text_file(directory / config_file_name, config.dump());
    std::vector<OutgoingTensor> out;
    for (const FileTensor& tensor : tensors) {
      out.push_back(
          {.name = tensor.name, .shape = tensor.shape, .produce = [&tensor](const ByteSink& sink) {
             sink(std::as_bytes(std::span(tensor.values)));
           }});
    }
    write_safetensors(directory / weights_file_name, out);
  }
  Transformer load() const {
    const TemporaryDirectory directory;
    write(directory.path());
    return load_transformer(StacksWanted::two, directory.path());
  }
  Transformer load_encoder() const {
    const TemporaryDirectory directory;
    write(directory.path());
    return load_transformer(StacksWanted::one, directory.path());
  }

  Json config;
  std::vector<FileTensor> tensors;
};

std::vector<float> all_of(const Transformer& model) {
  std::vector<float> values;
  for (const Parameter& parameter : model.parameters().list()) {
    const auto tensor = model.parameters().tensor(parameter.id).span();
    values.insert(values.end(), tensor.begin(), tensor.end());
  }
  return values;
}

Architecture described(const Json& document) {
  return architecture_from_json(document, "config.json");
}

TEST(PairFiles, HoldATiedMatrixUnderAnyOfItsNames) {
  const auto expected = all_of(load_transformer(StacksWanted::two, golden("marian")));
  for (const char* name : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "lm_head.weight", "shared.weight", "decoder.embed_tokens.weight"}) {
    Files files("marian");
    files.tensor("model.shared.weight").name = name;
    EXPECT_EQ(all_of(files.load()), expected) << name;
  }
  Files all("t5");  // has all names
  EXPECT_EQ(all_of(all.load()), all_of(load_transformer(StacksWanted::two, golden("t5"))));
  all.tensor("decoder.embed_tokens.weight").values[7] += 1;
  expect_error(
      ErrorCode::corrupt_data, [&] { all.load(); },
      "'decoder.embed_tokens.weight' differs from shared.weight");
  all.remove("decoder.embed_tokens.weight");
  all.tensor("lm_head.weight").values[7] += 1;
  expect_error(
      ErrorCode::corrupt_data, [&] { all.load(); }, "'lm_head.weight' differs from shared.weight",
      "tie_word_embeddings");
}

TEST(PairFiles, HoldBertUnderItsOldNamesToo) {
  const Transformer expected = load_transformer(StacksWanted::one, golden("bert"));
  Files files("bert");
  for (FileTensor& tensor : files.tensors) {
    const std::size_t at = tensor.name.find("LayerNorm.");
    if (at == std::string::npos) continue;
    tensor.name = tensor.name.substr(0, at) +
                  (tensor.name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
  }
  files.remove("cls.predictions.bias");  // and keeps cls.predictions.decoder.bias
  files.tensors.push_back({"bert.pooler.dense.weight", {32, 32}, std::vector<float>(1024)});
  files.tensors.push_back({"cls.seq_relationship.bias", {2}, {1, 2}});
  EXPECT_TRUE(
      std::ranges::equal(files.load_encoder().parameters().all(), expected.parameters().all()));
}

// What an index does not list may be a further name of a tensor that it lists, or a buffer.
TEST(PairFiles, MayHoldTensorsThatAnIndexDoesNotList) {
  const std::string unused =
      "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
  const auto load_without = [&](std::initializer_list<std::string> left_out) {
    const Files files("t5");  // has all names of its embedding, and a table that nothing reads
    const TemporaryDirectory directory;
    files.write(directory.path());
    std::filesystem::rename(directory / weights_file_name, directory / "one.safetensors");
    OrderedJson map;
    for (const FileTensor& tensor : files.tensors) {
      if (std::ranges::count(left_out, tensor.name) == 0) map[tensor.name] = "one.safetensors";
    }
    write_text_file(directory / "model.safetensors.index.json",
                    OrderedJson{{"weight_map", map}}.dump());
    return all_of(load_transformer(StacksWanted::two, directory.path()));
  };
  EXPECT_EQ(load_without({unused, "lm_head.weight", "shared.weight"}),
            all_of(load_transformer(StacksWanted::two, golden("t5"))));
  expect_error(
      ErrorCode::corrupt_data,
      [&] {
        load_without({"lm_head.weight", "shared.weight", "encoder.embed_tokens.weight",
                      "decoder.embed_tokens.weight"});
      },
      "which the index does not list");
  expect_error(
      ErrorCode::corrupt_data, [&] { load_without({"encoder.final_layer_norm.weight"}); },
      "'encoder.final_layer_norm.weight'", "which the index does not list");
}

TEST(PairFiles, MayHoldSinesThatHeedComputes) {
  Files files("marian_beams");
  const Transformer model = files.load();
  files.tensor("model.encoder.embed_positions.weight").values[18] += 1e-3F;
  expect_error(
      ErrorCode::unsupported, [&] { files.load(); }, "'model.encoder.embed_positions.weight'",
      "heed computes");
  files.tensor("model.encoder.embed_positions.weight").values[18] = std::nanf("");
  expect_error(
      ErrorCode::unsupported, [&] { files.load(); }, "is nan");
  const TemporaryDirectory directory;
  save_transformer(model, directory.path());
  EXPECT_EQ(SafetensorsFile::open(directory / weights_file_name)
                .find("model.encoder.embed_positions.weight"),
            nullptr);
}

TEST(PairFiles, HaveUnusedRowsBeforeBartsPositions) {
  const Transformer model = load_transformer(StacksWanted::two, golden("bart"));
  const TemporaryDirectory directory;
  save_transformer(model, directory.path());
  const auto file = SafetensorsFile::open(directory / weights_file_name);
  const TensorEntry& entry = *file.find("model.decoder.embed_positions.weight");
  ASSERT_EQ(entry.shape, (Shape{42, 32}));
  Tensor<float> rows(entry.shape);
  read_as_f32(entry, rows);
  EXPECT_TRUE(std::ranges::all_of(rows.span().subspan(0, 64), [](float x) { return x == 0; }));
  EXPECT_EQ(rows.view()(2, 0), model.stack(StackSite::decoder).parameters.position_embedding(0, 0));
  // A model without its unembedding has no bias of it.
  Files files("bart");
  files.remove("final_logits_bias");
  const Transformer plain = files.load();
  EXPECT_TRUE(
      std::ranges::all_of(plain.stack(StackSite::decoder).parameters.unembedding.bias.span(),
                          [](float x) { return x == 0; }));
}

TEST(PairFiles, MustHaveTheTensorsOfTheConfig) {
  struct Change {
    std::string model, missing, misshaped, surplus;
  };
  for (const auto& [model, missing, misshaped, surplus] :
       {Change{"marian", "model.decoder.layers.1.encoder_attn.k_proj.bias", "final_logits_bias",
               "model.encoder.layers.2.fc1.weight"},
        Change{"torch_pre", "model.encoder.layer_norm.weight", "model.decoder.layers.0.fc1.weight",
               "final_logits_bias"},
        Change{"bart", "model.decoder.layernorm_embedding.bias",
               "model.encoder.embed_positions.weight", "model.encoder.layer_norm.weight"},
        Change{"t5", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
               "decoder.block.1.layer.2.DenseReluDense.wi.weight",
               "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"},
        Change{"bert", "cls.predictions.transform.dense.weight",
               "bert.embeddings.token_type_embeddings.weight", "classifier.weight"}}) {
    const bool is_bert = model == "bert";
    const auto refuse = [&, model = model](const auto& change, auto... parts) {
      Files files(model);
      change(files);
      expect_error(
          ErrorCode::corrupt_data,
          [&] { is_bert ? void(files.load_encoder()) : void(files.load()); }, parts...);
    };
    refuse([&, name = missing](Files& files) { files.remove(name); },
           "'" + missing + "' is missing");
    refuse(
        [&, name = misshaped](Files& files) {
          FileTensor& tensor = files.tensor(name);
          tensor.shape = {tensor.shape.size(), 1};
        },
        "'" + misshaped + "' has shape");
    refuse(
        [&, name = surplus](Files& files) {
          files.tensors.push_back({name, {2}, {0, 0}});
        },
        "unexpected tensor '" + surplus + "'", is_bert ? "2 layers" : " layers)");
  }
}

TEST(PairConfig, NamesWhatHeedWouldComputeDifferently) {
  struct Change {
    const char* model;
    const char* key;
    Json value;
    ErrorCode code = ErrorCode::unsupported;
    std::string part = {};
  };
  const auto bad = ErrorCode::corrupt_data;
  for (const Change& change : {
           Change{"marian", "normalize_before", true},
           {"marian", "add_final_layer_norm", true},
           {"marian", "add_bias_logits", true},
           {"marian", "normalize_embedding", true},
           {"marian", "static_position_embeddings", false},
           {"marian", "is_encoder_decoder", false},
           {"marian", "activation_function", "mish", ErrorCode::unsupported, "mish"},
           {"marian", "decoder_attention_heads", 5, bad, "decoder_attention_heads 5"},
           {"marian", "encoder_layers", 0, bad, "layers must be between 1 and 4096, not 0"},
           {"marian", "decoder_vocab_size", 70, bad, "70"},
           {"marian", "decoder_start_token_id", 67, bad, "67"},
           {"marian", "pad_token_id", -1, bad, "-1"},
           {"marian", "max_position_embeddings", 1 << 20, bad, "context"},
           {"torch_pre", "heed", {{"norm_placement", "both"}}, bad, "norm_placement"},
           {"torch_pre", "heed", {{"sinusoids", "none"}}, bad, "sinusoids"},
           {"torch_pre", "heed", {{"positions", "rotary"}}, bad, "positions"},
           {"torch_pre",
            "heed",
            {{"positions", "relative"}, {"relative_buckets", 6}},
            bad,
            "relative positions have a multiple of 4 buckets"},
           {"bart", "normalize_before", true},
           {"bart", "normalize_embedding", false},
           {"bart", "static_position_embeddings", true},
           {"bart", "tie_word_embeddings", false},
           {"bart", "d_model", 33, bad, "33 channels"},
           {"t5", "feed_forward_proj", "gated-mish", ErrorCode::unsupported, "mish"},
           {"t5", "dense_act_fn", "silu", bad, "dense_act_fn"},
           {"t5", "is_gated_act", true, bad, "is_gated_act"},
           {"t5", "is_decoder", true},
           {"t5", "relative_attention_num_buckets", 7, bad, "7"},
           {"t5", "relative_attention_max_distance", 1, bad, "1"},
           {"bert", "position_embedding_type", "relative_key", ErrorCode::unsupported,
            "relative_key"},
           {"bert", "is_decoder", true},
           {"bert", "add_cross_attention", true},
           {"bert", "hidden_act", "mish", ErrorCode::unsupported, "mish"},
           {"bert", "type_vocab_size", -2, bad, "-2"},
       }) {
    Json document = read_config_document(golden(change.model) / config_file_name);
    document[change.key] = change.value;
    expect_error(
        change.code, [&] { described(document); }, "config.json",
        change.part.empty() ? change.key : change.part);
  }
}

TEST(PairConfig, ReadsTheFamilies) {
  const Architecture marian = read_architecture(golden("marian"));
  EXPECT_EQ(marian.padding, 66);
  EXPECT_EQ(marian.decoder_start, 66);
  EXPECT_EQ(marian.decoder().end_of_text, 0);
  EXPECT_TRUE(marian.decoder().is_post_norm());
  EXPECT_FALSE(marian.decoder().final_norm);
  EXPECT_EQ(marian.encoder().block.attention.sinusoids, SinusoidOrder::halves);
  EXPECT_EQ(marian.encoder().embedding_scale, std::sqrt(32.0F));
  const Architecture t5 = read_architecture(golden("t5"));
  EXPECT_EQ(t5.decoder().block.attention.score_scale(), 1.0F);
  EXPECT_TRUE(t5.encoder().block.attention.relative.both_directions);
  EXPECT_FALSE(t5.decoder().block.attention.relative.both_directions);
  EXPECT_EQ(t5.decoder().block.norm.kind, NormKind::rms);
  EXPECT_EQ(read_architecture(golden("t5_gated")).decoder().logit_scale, 1.0F);
  const Architecture current = read_architecture(golden("t5_current"));
  EXPECT_EQ(current.decoder().logit_scale, 1.0F);
  EXPECT_FALSE(current.decoder().tied_unembedding) << "whatever tie_word_embeddings says";
  EXPECT_TRUE(is_encoder_decoder_directory(golden("bart")));
  EXPECT_FALSE(is_encoder_decoder_directory(golden("bert")));
  EXPECT_FALSE(is_encoder_decoder_directory(golden("none")));
}

// T5 of transformers 5: `scale_decoder_outputs` decides.
TEST(PairFiles, OfT5MayLackTheUnembedding) {
  Files files("t5_current");
  const Transformer own = files.load();
  files.tensor("lm_head.weight").values[5] += 1;
  EXPECT_NE(all_of(files.load()), all_of(own)) << "it is read";
  files.remove("lm_head.weight");
  const Transformer shared = files.load();
  EXPECT_TRUE(
      std::ranges::equal(shared.stack(StackSite::decoder).parameters.unembedding.weight.span(),
                         shared.stack(StackSite::decoder).parameters.token_embedding.span()));
  files.config["scale_decoder_outputs"] = true;
  EXPECT_EQ(files.load().architecture().decoder().logit_scale, 0.25F);  // 1/√16
  EXPECT_TRUE(files.load().architecture().decoder().tied_unembedding);
}

// generation_config.json alone says how texts begin, where there is one; config.json where not.
TEST(PairConfig, SaysWithWhichTokenEveryTextBegins) {
  EXPECT_EQ(read_architecture(golden("bart")).forced_first, 0);
  EXPECT_EQ(read_architecture(golden("bart_beams")).forced_first, -1);
  Files files("bart");
  files.config["forced_bos_token_id"] = 3;
  const TemporaryDirectory directory;
  files.write(directory.path());
  EXPECT_EQ(read_architecture(directory.path()).forced_first, 3);
  EXPECT_EQ(load_transformer(StacksWanted::two, directory.path()).architecture().forced_first, 3);
  const auto generation = directory / "generation_config.json";
  write_text_file(generation, R"({"forced_bos_token_id": 5, "num_beams": 4})");
  EXPECT_EQ(read_architecture(directory.path()).forced_first, 5);
  const Transformer model = load_transformer(StacksWanted::two, directory.path());
  EXPECT_EQ(model.architecture().forced_first, 5);
  // What is saved has it in config.json.
  const TemporaryDirectory saved;
  save_transformer(model, saved.path());
  EXPECT_EQ(load_transformer(StacksWanted::two, saved.path()).architecture(), model.architecture());
  write_text_file(generation, R"({"num_beams": 4})");
  EXPECT_EQ(read_architecture(directory.path()).forced_first, -1);
  for (const char* wrong :
       {"{\"forced_bos_token_id\": 1000000}", "{\"forced_bos_token_id\": \"a\"}", "[]", "{"}) {
    write_text_file(generation, wrong);
    expect_error(
        ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::two, directory.path()); },
        "generation_config.json");
  }
}

// Where both files speak of a token, generation_config.json leads.
TEST(PairConfig, IsLedByTheConfigOfGeneration) {
  for (const char* family : {"marian", "bart", "t5"}) {
    Files files(family);
    files.config["decoder_start_token_id"] = 3;
    files.config["eos_token_id"] = {4, 5, 1000};
    files.config.erase("forced_bos_token_id");
    files.config.erase("forced_eos_token_id");
    const TemporaryDirectory directory;
    files.write(directory.path());
    Architecture architecture =
        load_transformer(StacksWanted::two, directory.path()).architecture();
    EXPECT_EQ(architecture.decoder_start, 3);
    EXPECT_EQ(architecture.end_tokens(), (std::vector<std::int32_t>{4, 5}));
    const auto generation = directory / generation_config_file_name;
    write_text_file(generation, R"({"num_beams": 4})");
    EXPECT_EQ(load_transformer(StacksWanted::two, directory.path()).architecture(), architecture)
        << "a file that says nothing changes nothing";
    write_text_file(generation, R"({"decoder_start_token_id": 6, "eos_token_id": [7, 8.0],
                                    "pad_token_id": 9, "forced_eos_token_id": 8})");
    architecture = load_transformer(StacksWanted::two, directory.path()).architecture();
    EXPECT_EQ(architecture.decoder_start, 6);
    EXPECT_EQ(architecture.padding, 9);
    EXPECT_EQ(architecture.forced_last, 8);
    EXPECT_EQ(architecture.end_tokens(), (std::vector<std::int32_t>{7, 8}));
    EXPECT_TRUE(architecture.ends_text(8) && !architecture.ends_text(4));
    // Given there alone, or nowhere but as the token that begins a text.
    files.config.erase("decoder_start_token_id");
    files.config.erase("eos_token_id");
    files.write(directory.path());
    EXPECT_EQ(load_transformer(StacksWanted::two, directory.path()).architecture(), architecture);
    write_text_file(generation, R"({"bos_token_id": 2})");
    EXPECT_EQ(load_transformer(StacksWanted::two, directory.path()).architecture().decoder_start,
              2);
    write_text_file(generation, R"({"decoder_start_token_id": 100000})");
    expect_error(
        ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::two, directory.path()); },
        "generation_config.json: 'decoder_start_token_id'", "100000");
  }
}

TEST(PairConfig, OfTheOtherKindIsRefused) {
  expect_error(
      ErrorCode::unsupported, [] { load_transformer(StacksWanted::one, golden("marian")); },
      "config.json", "a 'marian' model is an encoder and a decoder", "heed translate");
  expect_error(
      ErrorCode::unsupported, [] { read_stack_config(golden("t5") / config_file_name); }, "'t5'",
      "heed translate");
  for (const char* name : {"pairs/bert", "families/llama"}) {
    const auto directory = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden" / name;
    expect_error(
        ErrorCode::unsupported, [&] { load_transformer(StacksWanted::two, directory); },
        "config.json", "has one stack", "marian, bart, t5");
  }
}

// What heed trains: other placements, orders, rates and vocabularies than Marian's.
std::vector<Architecture> own_translators() {
  Architecture pre = read_architecture(golden("torch_pre"));
  for (StackSpecification& stack : pre.stacks) {
    stack.embedding_dropout = 0.05F;
    stack.residual_dropout = 0.3F;
    stack.block.norm.epsilon = 1e-6F;
    stack.initial_deviation = 0.017F;
  }
  pre.padding = pre.decoder_start = -1;
  Architecture apart = read_architecture(golden("marian"));
  apart.shared_embedding = false;
  apart.stacks[0].vocabulary_size = 41;
  apart.stacks[1].tied_unembedding = false;
  Architecture tied = apart;
  tied.stacks[1].tied_unembedding = true;
  tied.stacks[1].block.feed_forward.width = 24;
  Architecture gated = read_architecture(golden("t5_gated"));
  for (StackSpecification& stack : gated.stacks) {
    stack.block.feed_forward.activation = Activation::silu;
    stack.initial_deviation = 0.5F;
  }
  std::vector<Architecture> own{pre, apart, tied, gated};
  for (const PositionKind kind :
       {PositionKind::learned, PositionKind::relative, PositionKind::none}) {
    Architecture other = pre;
    for (StackSpecification& stack : other.stacks) {
      AttentionSpecification& attention = stack.block.attention;
      attention.positions = kind;
      if (kind != PositionKind::relative) continue;
      attention.relative = {
          .buckets = 12, .max_distance = 50, .both_directions = stack.role == StackRole::encoder};
    }
    own.push_back(other);
  }
  return own;
}

TEST(PairFiles, OfHeedsOwnTranslatorsAreReadAsTheyWereWritten) {
  for (const Architecture& architecture : own_translators()) {
    Transformer model(architecture);
    model.parameters().initialize(3);
    float value = 0.5F;
    for (float& element : model.parameters().all()) element += value += 1e-4F;
    const TemporaryDirectory directory;
    save_transformer(model, directory.path());
    const Transformer loaded = load_transformer(StacksWanted::two, directory.path());
    EXPECT_EQ(loaded.architecture(), architecture);
    EXPECT_EQ(all_of(loaded), all_of(model));
  }
}

// Other programs know `marian` as one function.
TEST(PairFiles, OfHeedsOwnTranslatorsHaveATypeOfTheirOwn) {
  for (const Architecture& architecture : own_translators()) {
    const bool is_t5 = architecture.decoder().block.norm.kind == NormKind::rms;
    const OrderedJson json = architecture_to_json(architecture);
    const std::string type = json["model_type"];
    EXPECT_EQ(type == "heed_translator", json.contains("heed") && !is_t5) << json.dump();
    EXPECT_EQ(json["architectures"][0] == "HeedTranslator", type == "heed_translator");
  }
  // Older directories call them marian.
  Json old = Json(architecture_to_json(own_translators().front()));
  EXPECT_EQ(old["model_type"], "heed_translator");
  const Architecture expected = described(old);
  old["model_type"] = "marian";
  EXPECT_EQ(described(old), expected);
}

TEST(PairFiles, AreNotWrittenWhereNoFormatExpressesTheModel) {
  const auto refused = [](const auto& change) {
    Architecture architecture = read_architecture(golden("marian"));
    change(architecture);
    const Transformer model(architecture);
    const TemporaryDirectory directory;
    expect_error(
        ErrorCode::unsupported, [&] { save_transformer(model, directory.path()); },
        "no known checkpoint format");
    EXPECT_EQ(directory.entries(), 0U);
  };
  refused([](Architecture& a) { a.stacks[0].block.attention.positions = PositionKind::learned; });
  refused([](Architecture& a) { a.stacks[1].context = 20; });
  refused([](Architecture& a) { a.stacks[1].embedding_scale = 3; });
  refused([](Architecture& a) { a.stacks[0].block.norm.placement = NormPlacement::pre; });
  refused([](Architecture& a) { a.stacks[1].block.cross_attention->output_bias = false; });
  // Nor does a decoder's format say that a stack is an encoder, or has norms after its branches.
  StackSpecification stack = make_gpt_config(1, 2, 8, 4, 9);
  EXPECT_EQ(format_of_stack(stack).name, "gpt2");
  stack.block.norm.placement = NormPlacement::post;
  expect_error(
      ErrorCode::unsupported, [&] { format_of_stack(stack); }, "no known checkpoint format");
}

}  // namespace pair_files
}  // namespace
}  // namespace heed
