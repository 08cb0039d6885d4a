// What makes a model usable survives `heed convert` and `heed train --from`: every command gives
// the same before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "chat/chat_template.h"
#include "cli/run_heed.h"
#include "engine/loaded_model.h"
#include "support/chat_model.h"
#include "support/small_translator_files.h"

namespace heed::testing {
namespace {

namespace fs = std::filesystem;

class Kept : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const {
    return "'" + (directory_ / name).string() + "'";
  }
  // `heed train --from` that changes no weight: its learning rate is smaller than any bit of one.
  void train_from(const std::string& data) const {
    const Outcome trained =
        run_heed("train --from " + path("model") + data +
                     " -t 1 --set steps=2 --set learning_rate=1e-30 "
                     "--set min_learning_rate=0 --set evaluate_every=2 --set precision=f32 --set "
                     "warmup_steps=0 --out " +
                     path("run"),
                 "HEED_CACHE=" + path("cache"));
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  void convert(const std::string& dtype, const std::string& out) const {
    const Outcome converted =
        run_heed("convert " + path("model") + " --dtype " + dtype + " --out " + path(out));
    ASSERT_EQ(converted.status, 0) << converted.err;
  }
  Json edited_config(const Json& changes) const {
    Json config = read_config_document(directory_ / "model/config.json");
    config.update(changes);
    write_text_file(directory_ / "model/config.json", config.dump());
    return config;
  }

  TemporaryDirectory directory_;
};

TEST_F(Kept, ChatsAndTextsEndAndBeginAlike) {
  write_chat_model(directory_ / "model");
  const LoadedModel model = load_model((directory_ / "model").string());
  // The token that the model writes fifth: a text that goes on ends there, and only there.
  const std::string arguments = " -p 'One day' -n 12 --temp 0 -t 1 --json";
  const Json free = json_of("generate -m " + path("model") + arguments);
  const Json fifth = free["tokens"][4].is_object() ? free["tokens"][4]["id"] : free["tokens"][4];
  edited_config({{"eos_token_id", {1, 2}}, {"bos_token_id", 3}, {"unknown_field", {1, "x"}}});
  write_text_file(directory_ / "model/generation_config.json",
                  Json{{"eos_token_id", {0, fifth}}, {"temperature", 0.6}}.dump());
  write_text_file(directory_ / "model/chat_template.jinja", chat_template_source);

  const std::string data = read_text_file(fs::path(HEED_SOURCE_DIR) / "README.md");
  write_text_file(directory_ / "text", data);
  train_from(" --data " + path("text") + " --set batch_size=1 --set sequence_length=16");
  convert("f32", "f32");
  const Json expected = json_of("generate -m " + path("model") + arguments);
  EXPECT_EQ(expected["finish_reason"], "stop_token") << expected.dump();
  const std::vector<std::int32_t> ends = load_model((directory_ / "model").string()).end_tokens();
  const Outcome chat = run_heed("chat -m " + path("model") + " --temp 0 -n 8 -t 1", "echo Hi |");
  ASSERT_EQ(chat.status, 0) << chat.err;
  for (const char* const name : {"f32", "run/last"}) {
    SCOPED_TRACE(name);
    const fs::path copy = directory_ / name;
    Json found = json_of("generate -m " + path(name) + arguments);
    EXPECT_EQ(found["tokens"], expected["tokens"]);
    EXPECT_EQ(found["finish_reason"], "stop_token");
    EXPECT_EQ(load_model(copy.string()).end_tokens(), ends);
    EXPECT_EQ(load_model(copy.string()).beginning_of_text(), 3);
    EXPECT_EQ(run_heed("chat -m " + path(name) + " --temp 0 -n 8 -t 1", "echo Hi |").out, chat.out);
    EXPECT_EQ(chat::find_chat_template(copy)->source, chat_template_source);
    EXPECT_EQ(read_config_document(copy / "config.json")["unknown_field"], Json({1, "x"}));
    EXPECT_EQ(read_config_document(copy / "config.json")["eos_token_id"], Json({1, 2}));
    for (const char* const file : {"generation_config.json", "tokenizer_config.json"}) {
      EXPECT_EQ(read_text_file(copy / file), read_text_file(directory_ / "model" / file));
    }
  }
  // A run that goes on has it from its own checkpoint: the model may be gone.
  fs::remove_all(directory_ / "model");
  const Outcome resumed = run_heed("train --resume --set steps=2 -t 1 --out " + path("run"),
                                   "HEED_CACHE=" + path("cache"));
  EXPECT_EQ(load_model((directory_ / "run/last").string()).end_tokens(), ends) << resumed.err;
}

TEST_F(Kept, TranslationsBeginAndEndAlike) {
  write_small_translator(directory_ / "model");
  const std::string text = "translate -t 1 --json -m ";
  const Json first = json_of(text + path("model") + " 'one two'");
  // Said by generation_config.json alone, and by config.json otherwise.
  Json config = read_config_document(directory_ / "model/config.json");
  const Json start = config["decoder_start_token_id"], end = config["eos_token_id"];
  edited_config({{"decoder_start_token_id", 5}, {"eos_token_id", 6}, {"extra", true}});
  write_text_file(directory_ / "model/generation_config.json",
                  Json{{"decoder_start_token_id", start}, {"eos_token_id", {end, 7}}}.dump());
  const Json expected = json_of(text + path("model") + " 'one two'");
  convert("f32", "f32");
  std::string source, target;
  for (int i = 0; i < 60; ++i) {
    source += "one two\n";
    target += "eins zwei\n";
  }
  write_text_file(directory_ / "text.en", source);
  write_text_file(directory_ / "text.de", target);
  train_from(" --pairs " + path("text.en") + " " + path("text.de") +
             " --set batch_tokens=200 --set measure=none");
  const Architecture architecture = read_architecture(directory_ / "model");
  EXPECT_EQ(architecture.decoder_start, start);
  for (const char* const name : {"f32", "run/last"}) {
    SCOPED_TRACE(name);
    Json found = json_of(text + path(name) + " 'one two'");
    found["model"] = expected["model"];
    EXPECT_EQ(found, expected);
    EXPECT_EQ(read_architecture(directory_ / name).end_tokens(), architecture.end_tokens());
    EXPECT_EQ(read_config_document(directory_ / name / "config.json")["extra"], true);
  }
}

TEST_F(Kept, BuiltInModelsAreTheirFiles) {
  for (const char* const name : {"starter", "translator"}) {
    const Outcome converted =
        run_heed("convert " + std::string(name) + " --dtype f32 --out " + path(name));
    ASSERT_EQ(converted.status, 0) << converted.err;
    const auto own = fs::path(HEED_SOURCE_DIR) / "models" / name;
    Json expected = read_config_document(own / "config.json");
    Json found = read_config_document(directory_ / name / "config.json");
    for (const char* const key : {"model_type", "architectures"}) {
      if (std::string(name) == "translator") found[key] = expected[key];
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(read_text_file(directory_ / name / "tokenizer.json"),
              read_text_file(own / "tokenizer.json"));
  }
}

TEST_F(Kept, AWeightThatRoundsToInfinityIsNamed) {
  Transformer transformer = small_gpt(30);
  transformer.parameters().tensor({Role::down, Part::weight, 1, StackSite::only}).data()[3] =
      3.4e38F;
  save_transformer(transformer, directory_ / "model");
  const Outcome converted =
      run_heed("convert " + path("model") + " --dtype bf16 --out " + path("out"));
  EXPECT_EQ(converted.status, 1);
  EXPECT_THAT(converted.err, ::testing::HasSubstr("'h.1.mlp.c_proj.weight'"));
  EXPECT_THAT(converted.err, ::testing::HasSubstr("bf16"));
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

}  // namespace
}  // namespace heed::testing
