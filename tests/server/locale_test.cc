// Serving in a process whose locale writes 0,1 for 0.1.
#include <gtest/gtest.h>

#include "server/test_server.h"
#include "support/comma_locale.h"

namespace heed::server {
namespace {

using testing::starter_prompt;
using testing::starter_server;

TEST(ServerLocale, WithADecimalCommaGivesTheSameReplies) {
  const Json body{{"prompt", starter_prompt},
                  {"max_tokens", 12},
                  {"temperature", 0.7},
                  {"top_p", 0.95},
                  {"logprobs", 3},
                  {"seed", 4},
                  {"min_p", 0.01},
                  {"echo", true}};
  const Json sentence{{"input", starter_prompt}};
  const auto choices = [&] { return starter_server().post("/v1/completions", body)["choices"]; };
  const auto data = [&] { return starter_server().post("/v1/embeddings", sentence)["data"]; };
  const Json before = choices(), embedding = data();
  ASSERT_TRUE(before[0]["logprobs"]["token_logprobs"].back().is_number_float());
  const heed::testing::CommaLocale comma;
  if (!comma.is_set()) GTEST_SKIP() << "this machine makes no locale with a decimal comma";
  EXPECT_EQ(choices(), before);
  EXPECT_EQ(data(), embedding);
}

}  // namespace
}  // namespace heed::server
