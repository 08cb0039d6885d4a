// heed bench: what it prints and what it refuses. Nothing here depends on how fast it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "cli/run_heed.h"
#include "kernels/instruction_sets.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::run_heed;

std::string small(const std::string& option) {
  return option + " " + testing::model_directory().string() + " -r 2 -t 1 ";
}

Json bench_json(const std::string& arguments) {
  const Outcome outcome = run_heed("bench " + arguments + " --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("heed:")));  // progress alone, where it takes long
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1);
  return parse_json(outcome.out, arguments);
}

void expect_rows(const Json& document, const std::string& suite) {
  EXPECT_EQ(document["suite"], suite);
  for (const char* key : {"f32_multiply_add_flops_per_s", "bf16_dot_product_flops_per_s",
                          "bf16_tile_product_flops_per_s", "read_bytes_per_s"}) {
    EXPECT_TRUE(document["ceilings"].contains(key)) << key;
  }
  ASSERT_FALSE(document["rows"].empty());
  for (const Json& row : document["rows"]) {
    EXPECT_EQ(row["suite"], suite);
    for (const char* key :
         {"name", "dtype", "threads", "repeats", "seconds", "seconds_min", "seconds_max", "flops",
          "bytes", "flops_per_s", "bytes_per_s", "of_peak", "of_sustained_peak", "peak",
          "of_bf16_dot_product", "peak_rss_bytes"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    EXPECT_EQ(row["repeats"], 2);
    EXPECT_LE(row["seconds_min"], row["seconds"]);
    EXPECT_LE(row["seconds"], row["seconds_max"]);
  }
}

TEST(Bench, MeasuresTheMachine) {
  const Json document = bench_json("peak -r 2 -t 1");
  expect_rows(document, "peak");
  EXPECT_EQ(document["rows"][0]["name"], "f32_multiply_add");
  EXPECT_EQ(document["rows"].back()["name"], "read");
  EXPECT_EQ(document["rows"].back()["flops"], nullptr);
}

TEST(Bench, MeasuresModels) {
  const Json train =
      bench_json("train --dtype bf16 --batch 2 --context 8 -n 2 " + small("--config"));
  expect_rows(train, "train");
  EXPECT_EQ(train["rows"][0]["dtype"], "bf16");
  EXPECT_GT(train["rows"][0]["tokens_per_s"], 0);
  const Json decode = bench_json("decode --context 5 -n 4 " + small("-m"));
  expect_rows(decode, "decode");
  EXPECT_EQ(decode["context"], 5);
  EXPECT_EQ(decode["count"], 4);
  EXPECT_EQ(decode["rows"][0]["peak"], "read");
  EXPECT_EQ(decode["rows"][0]["of_bf16_dot_product"], nullptr);
}

TEST(Bench, MeasuresSeveralContextsAndConfigs) {
  const std::string directory = testing::model_directory().string();
  const Json document = bench_json("decode -c 3,200 -n 2 -r 2 -t 1 --cache-type int8 --config " +
                                   directory + "," + directory);
  expect_rows(document, "decode");
  ASSERT_EQ(document["rows"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(document["rows"][i]["context"], i % 2 == 0 ? 3 : 200);
    EXPECT_EQ(document["rows"][i]["model"], directory);
    EXPECT_EQ(document["rows"][i]["cache_type"], "int8");
  }
}

TEST(Bench, MeasuresOtherInstructions) {
  const std::string oldest = kernels::available_instruction_sets().back();
  const Json document = bench_json("peak -r 2 -t 1 --instructions " + oldest);
  EXPECT_EQ(document["instruction_set"], oldest);
  const Outcome refused = run_heed("bench peak --instructions MMX");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr(oldest));
}

// Of a program that always says 8 tokens a second.
TEST(Bench, AlternatesWithAnotherProgram) {
  const std::string log = ::testing::TempDir() + "heed-against-log";
  std::filesystem::remove(log);
  const std::string command = "echo once >> " + log + "; echo 3 runs, 8.0e0 tok/s";
  const Json row =
      bench_json("prompt -c 16 --against '" + command + "' " + small("--config"))["rows"][0];
  EXPECT_EQ(row["against"]["tokens_per_s"], 8);
  const double tokens = row["tokens_per_s"].get<double>() * row["seconds"].get<double>();
  EXPECT_NEAR(row["against"]["times_min"].get<double>() * row["seconds_max"].get<double>(),
              tokens / 8, 1e-6);
  EXPECT_NEAR(row["against"]["times_max"].get<double>() * row["seconds_min"].get<double>(),
              tokens / 8, 1e-6);
  EXPECT_LE(row["against"]["times_min"], row["against"]["times"]);
  EXPECT_LE(row["against"]["times"], row["against"]["times_max"]);
  EXPECT_EQ(read_text_file(log), "once\nonce\nonce\n");  // one to warm up
  std::filesystem::remove(log);
  const Outcome shown = run_heed("bench attention -c 16 --against 'echo 8' " + small("--config"));
  EXPECT_THAT(shown.out, HasSubstr("times the 8.00 tokens/s of the other program"));
}

TEST(Bench, RefusesProgramsWithoutARate) {
  const auto refused = [](const std::string& command, const char* part) {
    const Outcome outcome =
        run_heed("bench prompt -c 16 --against '" + command + "' " + small("--config"));
    EXPECT_NE(outcome.status, 0) << command;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << command;
  };
  refused("exit 3", "status 3");
  refused("kill -9 $$", "signal 9");
  refused("echo nothing", "printed none");
  refused("echo 0", "printed 0");
  EXPECT_EQ(run_heed("bench prompt -c 16,32 --against \"echo 8\" " + small("--config")).status, 2);
}

TEST(Bench, ShowsATable) {
  const Outcome outcome = run_heed("bench attention -c 64 " + small("--config"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"Causal attention", "1 × 64 positions", "f32 multiply-adds", "forward",
                           "backward", "GFLOP/s", "of peak", "sustained"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(Bench, MeasuresTranslators) {
  const std::string call = "translate --config translator-tiny -b 4 -c 6 -r 2 -t 1 ";
  const Json document = bench_json(call);
  expect_rows(document, "translate");
  ASSERT_EQ(document["rows"].size(), 4U);
  for (const Json& row : document["rows"]) {
    EXPECT_TRUE(row.contains("of_products"));
    EXPECT_TRUE(row.contains("of_read"));
    EXPECT_EQ(row["batch"], 4);
  }
  const Outcome outcome = run_heed("bench " + call + "--beams 2");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"Translation", "4 pairs of 6 tokens each", "step", "encode", "greedy",
                           "2 beams", "of products", "of reads"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(Bench, RefusesInOneLine) {
  const auto expect = [](const std::string& arguments, int status, const char* message) {
    const Outcome outcome = run_heed("bench " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
  };
  expect("", 2, "--help");
  expect("nonsense", 2, "--help");
  expect("train --dtype f16", 2, "f16");
  expect("train --dtype int4 " + small("--config"), 1, "int4");
  expect("train --config nonsense", 1, "gpt2");
  expect("train --config gpt2 -m starter", 2, "--config");
  expect("prompt --context 4096 " + small("-m"), 2, "4096");
  expect("decode -n 0 " + small("--config"), 2, "count");
  expect("tokenizer -m /nowhere", 1, "/nowhere");
  expect("translate --config gpt2", 1, "no encoder");
  expect("translate --config nonsense", 1, "multi30k-en-de");
  expect("translate --beams 0 --config translator-tiny", 2, "beams");
  expect("tokenizer -f /nowhere", 1, "/nowhere");
}

}  // namespace
}  // namespace heed
