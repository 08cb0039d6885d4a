// Against sacreBLEU: a committed document, and one of any size that oracle/run.sh makes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "scoring/records.h"

namespace heed::scoring {
namespace {

Json records_from(const std::string& path) { return Json::parse(read_text_file(path)); }

TEST(Sacrebleu, GivesTheCommittedScores) {
  expect_same_as_sacrebleu(records_from(HEED_SOURCE_DIR "/tests/golden/scoring/scores.json"));
}

TEST(Oracle, EqualsSacrebleu) {
  const char* const path = std::getenv("HEED_SACREBLEU_RECORDS");
  if (path == nullptr) {
    GTEST_SKIP() << "HEED_SACREBLEU_RECORDS is not set; tests/scoring/oracle/run.sh makes it";
  }
  const Json records = records_from(path);
  expect_same_as_sacrebleu(records);
  std::cout << "sacreBLEU " << records.at("sacrebleu").get<std::string>() << ": "
            << records.at("tokenized").size() << " sentences tokenized, "
            << records.at("corpora").size() << " corpora scored\n";
}

}  // namespace
}  // namespace heed::scoring
