// Files of sparse dictionaries that are wrong in one way each, and the message of each.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "microscope/features/dictionary_files.h"
#include "model/transformer.h"
#include "support/small_model.h"

namespace heed {
namespace {

using testing::expect_error;
using enum ErrorCode;

// Tensors of a dictionary of 4 inputs and 6 features, which a case changes.
class Tensors {
 public:
  void set(const std::string& name, const std::vector<std::int64_t>& extents, float value = 0.5F) {
    Tensor<float> values(Shape(extents.data(), static_cast<int>(extents.size())));
    values.fill(value);
    values_[name] = std::move(values);
  }
  void remove(const std::string& name) { values_.erase(name); }
  void poison(const std::string& name, float value) { values_.at(name)[1] = value; }
  void rename(const std::string& from, const std::string& to) {
    values_[to] = std::move(values_.at(from));
    values_.erase(from);
  }
  void retype(const std::string& name, DType type) { types_[name] = type; }

  std::vector<TensorEntry> entries() const {
    std::vector<TensorEntry> all;
    for (const auto& [name, values] : values_) {
      const auto type = types_.find(name);
      all.push_back({.name = name,
                     .dtype = type == types_.end() ? DType::f32 : type->second,
                     .shape = values.shape(),
                     .bytes = std::as_bytes(values.span())});
    }
    return all;
  }

 private:
  std::map<std::string, Tensor<float>> values_;
  std::map<std::string, DType> types_;
};

Tensors good_tensors() {
  Tensors tensors;
  tensors.set("W_enc", {4, 6});
  tensors.set("W_dec", {6, 4});
  tensors.set("b_dec", {4});
  for (const char* name : {"b_enc", "b_gate", "b_mag", "r_mag", "threshold", "scaling_factor"}) {
    tensors.set(name, {6});
  }
  tensors.set("W_skip", {4, 4});
  return tensors;
}

Json good_config(const std::string& architecture) {
  return {{"architecture", architecture},    {"d_in", 4}, {"d_sae", 6},
          {"normalize_activations", "none"}, {"k", 2},    {"hook_name", "blocks.0.hook_resid_pre"}};
}

struct Malformed {
  std::string architecture;
  std::string change;  // of the config, a JSON merge patch
  std::function<void(Tensors&)> damage;
  ErrorCode code;
  std::string part;
};

constexpr float beyond_numbers = std::numeric_limits<float>::infinity();

std::vector<Malformed> wrong_configs() {
  const auto none = [](Tensors&) {};
  const auto of = [&](const std::string& architecture, const std::string& change, ErrorCode code,
                      const std::string& part) {
    return Malformed{architecture, change, none, code, part};
  };
  return {
      of("vanilla", "{}", unsupported, "the architecture 'vanilla' is unknown"),
      of("", "{}", unsupported, "architecture ''"),
      of("standard", R"({"architecture":7})", corrupt_data, "architecture must be"),
      of("standard", R"({"d_in":null})", corrupt_data, "d_in is missing"),
      of("standard", R"({"d_sae":null})", corrupt_data, "d_sae is missing"),
      of("standard", R"({"d_in":0})", corrupt_data, "d_in must be"),
      of("standard", R"({"d_in":-4})", corrupt_data, "-4"),
      of("standard", R"({"d_in":4.5})", corrupt_data, "4.5"),
      of("standard", R"({"d_in":"4"})", corrupt_data, "d_in must be"),
      of("standard", R"({"d_in":1e30})", corrupt_data, "d_in must be"),
      of("standard", R"({"d_in":99999999999})", corrupt_data, "99999999999"),
      of("standard", R"({"d_sae":99999999999999})", corrupt_data, "d_sae must be"),
      of("standard", R"({"d_sae":[6]})", corrupt_data, "d_sae must be"),
      of("standard", R"({"d_in":5})", corrupt_data, "W_enc has shape (4, 6), expected (5, 6)"),
      of("standard", R"({"d_sae":7})", corrupt_data, "expected (4, 7)"),
      of("standard", R"({"normalize_activations":"batch_norm"})", unsupported, "batch_norm"),
      of("standard", R"({"normalize_activations":3})", corrupt_data, "normalize_activations"),
      of("standard", R"({"apply_b_dec_to_input":"yes"})", corrupt_data, "apply_b_dec_to_input"),
      of("standard", R"({"activation_fn_str":"tanh-relu"})", unsupported, "tanh-relu"),
      of("standard", R"({"activation_fn_str":1})", corrupt_data, "activation_fn_str"),
      of("standard", R"({"reshape_activations":"transpose"})", unsupported, "transpose"),
      of("standard", R"({"hook_name":null})", invalid_argument, "does not say which point"),
      of("standard", R"({"hook_name":3})", corrupt_data, "hook_name"),
      of("standard", R"({"hook_name":"blocks.{layer}.hook_z"})", corrupt_data, "names no layer"),
      of("standard", R"({"hook_head_index":-1})", corrupt_data, "hook_head_index"),
      of("standard", R"({"hook_head_index":"h3"})", corrupt_data, "hook_head_index"),
      of("standard", R"({"metadata":[1]})", corrupt_data, "metadata is no object"),
      of("standard", R"({"model_name":{}})", corrupt_data, "model_name"),
      of("topk", R"({"k":null})", corrupt_data, "k is missing"),
      of("topk", R"({"k":0})", corrupt_data, "k must be"),
      of("topk", R"({"k":7})", corrupt_data, "k is 7, expected 1 to 6"),
      of("topk", R"({"k":"two"})", corrupt_data, "k must be"),
      of("batchtopk", R"({"k":-2.5})", corrupt_data, "k must be"),
      of("standard", R"({"activation_fn_str":"topk","k":null})", corrupt_data, "k is missing"),
      of("standard", R"({"activation_fn_str":"topk","k":null,"activation_fn_kwargs":{"k":9}})",
         corrupt_data, "k is 9"),
      of("transcoder", R"({"d_out":0})", corrupt_data, "d_out must be"),
      of("transcoder", R"({"d_out":3})", corrupt_data, "W_dec has shape (6, 4), expected (6, 3)"),
      of("skip_transcoder", R"({"hook_name_out":5})", corrupt_data, "hook_name_out"),
  };
}

std::vector<Malformed> wrong_tensors() {
  const auto of = [&](const std::string& architecture, std::function<void(Tensors&)> damage,
                      ErrorCode code, const std::string& part, const std::string& change = "{}") {
    return Malformed{architecture, change, std::move(damage), code, part};
  };
  const auto without = [](const char* name) {
    return [name](Tensors& tensors) { tensors.remove(name); };
  };
  const auto shaped = [](const char* name, std::vector<std::int64_t> shape) {
    return [name, shape](Tensors& tensors) { tensors.set(name, shape); };
  };
  const auto with = [](const char* name, float value) {
    return [name, value](Tensors& tensors) { tensors.poison(name, value); };
  };
  return {
      of("standard", without("W_enc"), corrupt_data, "the tensor W_enc is missing"),
      of("standard", without("W_dec"), corrupt_data, "the tensor W_dec is missing"),
      of("standard", without("b_enc"), corrupt_data, "the tensor b_enc is missing"),
      of("standard", without("b_dec"), corrupt_data, "the tensor b_dec is missing"),
      of("jumprelu", without("threshold"), corrupt_data, "the tensor threshold is missing"),
      of("gated", without("b_gate"), corrupt_data, "the tensor b_gate is missing"),
      of("gated", without("b_mag"), corrupt_data, "the tensor b_mag is missing"),
      of("gated", without("r_mag"), corrupt_data, "the tensor r_mag is missing"),
      of("skip_transcoder", without("W_skip"), corrupt_data, "the tensor W_skip is missing"),
      of("standard", without("scaling_factor"), corrupt_data, "scaling_factor is missing",
         R"({"finetuning_scaling_factor":true})"),
      of("standard", shaped("W_enc", {6, 4}), corrupt_data, "W_enc has shape (6, 4)"),
      of("standard", shaped("W_enc", {24}), corrupt_data, "W_enc has shape (24)"),
      of("standard", shaped("W_dec", {6, 4, 1}), corrupt_data, "W_dec has shape (6, 4, 1)"),
      of("standard", shaped("b_enc", {6, 1}), corrupt_data, "b_enc has shape (6, 1)"),
      of("standard", shaped("b_dec", {6}), corrupt_data, "b_dec has shape (6)"),
      of("jumprelu", shaped("threshold", {1}), corrupt_data, "threshold has shape (1)"),
      of("gated", shaped("r_mag", {4}), corrupt_data, "r_mag has shape (4)"),
      of("skip_transcoder", shaped("W_skip", {4, 6}), corrupt_data, "W_skip has shape (4, 6)"),
      of("batchtopk", shaped("topk_threshold", {2}), corrupt_data, "expected one number"),
      of("standard", with("W_enc", NAN), corrupt_data, "W_enc holds a number that is not finite"),
      of("standard", with("W_dec", beyond_numbers), corrupt_data, "W_dec holds"),
      of("standard", with("b_enc", NAN), corrupt_data, "b_enc holds"),
      of("standard", with("b_dec", -beyond_numbers), corrupt_data, "b_dec holds"),
      of("jumprelu", with("threshold", NAN), corrupt_data, "threshold holds"),
      of("gated", with("r_mag", 1000.0F), corrupt_data, "r_mag holds"),  // exp(1000)
      of("gated", with("b_gate", NAN), corrupt_data, "b_gate holds"),
      of("skip_transcoder", with("W_skip", NAN), corrupt_data, "W_skip holds"),
      of(
          "standard", [](Tensors& t) { t.retype("W_enc", DType::i32); }, unsupported, "W_enc"),
      of(
          "topk",
          [](Tensors& t) {
            t.set("W_dec", {6, 4}, 0.0F);
          },
          corrupt_data, "row 0 of W_dec is zero", R"({"rescale_acts_by_decoder_norm":true})"),
      of(
          "standard", [](Tensors& t) { t.rename("b_enc", "B_enc"); }, corrupt_data,
          "the tensor b_enc is missing"),
  };
}

void expect_refused(const Malformed& wrong) {
  SCOPED_TRACE(wrong.architecture + " " + wrong.change + " " + wrong.part);
  Json config = good_config(wrong.architecture);
  config.merge_patch(parse_json(wrong.change, "change"));
  Tensors tensors = good_tensors();
  wrong.damage(tensors);
  const std::vector<TensorEntry> entries = tensors.entries();
  expect_error(
      wrong.code, [&] { saelens_dictionary(config, entries, "x/sae"); }, wrong.part, "x/sae");
}

TEST(MalformedDictionary, EveryConfigIsRefusedByName) {
  for (const Malformed& wrong : wrong_configs()) expect_refused(wrong);
}

TEST(MalformedDictionary, EveryTensorIsRefusedByName) {
  for (const Malformed& wrong : wrong_tensors()) expect_refused(wrong);
}

// All of them are wrong in one way only.
TEST(MalformedDictionary, WhatTheyChangeIsGood) {
  const Tensors tensors = good_tensors();
  const std::vector<TensorEntry> entries = tensors.entries();
  for (const char* architecture : {"standard", "gated", "topk", "batchtopk", "jumprelu",
                                   "transcoder", "skip_transcoder", "jumprelu_transcoder"}) {
    EXPECT_EQ(saelens_dictionary(good_config(architecture), entries, "x").specification().features,
              6)
        << architecture;
  }
}

TEST(MalformedDictionary, FoldersAreRefusedByName) {
  const testing::TemporaryDirectory directory;
  expect_error(
      not_found, [&] { load_dictionaries(directory.path()); }, "holds no sparse autoencoder");
  expect_error(
      not_found, [&] { load_dictionaries(directory.path() / "none"); }, "does not exist");
  // Folders are those of a directory, not of what lies beside a file; some cannot be read.
  std::filesystem::create_directory(directory.path() / "inner");
  write_text_file(directory.path() / "inner" / "cfg.json", "{}");
  write_text_file(directory.path() / "notes.txt", "");
  std::filesystem::create_symlink("loop", directory.path() / "loop");
  expect_error(
      not_found, [&] { load_dictionaries(directory.path() / "notes.txt"); },
      "holds no sparse autoencoder");
  expect_error(
      not_found, [&] { load_dictionaries(directory.path()); }, "but no sae_weights.safetensors");
  write_text_file(directory.path() / "cfg.json", "{}");
  expect_error(
      not_found, [&] { load_dictionaries(directory.path()); }, "but no sae_weights.safetensors");
  write_text_file(directory.path() / "sae_weights.safetensors", "short");
  expect_error(
      corrupt_data, [&] { load_dictionaries(directory.path()); }, "sae_weights.safetensors");
  write_text_file(directory.path() / "cfg.json", "{]");
  expect_error(
      corrupt_data, [&] { load_dictionaries(directory.path()); }, "cfg.json");
  expect_error(
      invalid_argument,
      [&] {
        const Tensors tensors = good_tensors();
        saelens_dictionary(good_config("standard"), tensors.entries(), "x",
                           {.input_point = {}, .output_point = {}, .norm_scaling_factor = 2.0});
      },
      "expected_average_only_in");
}

TEST(MalformedDictionary, OfAnotherWidthThanTheModelIsRefused) {
  const Tensors tensors = good_tensors();
  Json config = good_config("standard");
  const auto fits = [&](const std::string& point) {
    config["hook_name"] = point;
    require_fits(saelens_dictionary(config, tensors.entries(), "x"),
                 testing::small_gpt(40).architecture());
  };
  expect_error(
      invalid_argument, [&] { fits("blocks.0.hook_resid_pre"); },
      "has 4 inputs, but blocks.0.hook_resid_pre of this model is");
  expect_error(
      invalid_argument, [&] { fits("blocks.99.hook_resid_pre"); }, "99");
  expect_error(
      invalid_argument, [&] { fits("blocks.0.hook_residue"); }, "hook_residue");
  expect_error(
      invalid_argument, [&] { fits("hook_resid_pre"); }, "expected one");
  expect_error(
      unsupported, [&] { fits("blocks.0.attn.hook_pattern"); }, "hook_mlp_out");
  config["hook_head_index"] = 77;
  expect_error(
      invalid_argument, [&] { fits("blocks.0.attn.hook_z"); }, "head 77");
}

}  // namespace
}  // namespace heed
