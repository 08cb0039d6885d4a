// Where the tests find data that is not in the repository.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace heed {

// $HEED_TEST_DATA, or shared/data beside the checkout.
inline std::filesystem::path test_data() {
  const char* named = std::getenv("HEED_TEST_DATA");
  return named != nullptr ? named : HEED_SOURCE_DIR "/../shared/data";
}

}  // namespace heed

// Skips the test where the file or directory `name` of the test data is absent.
#define HEED_NEEDS_DATA(name)                                 \
  if (!std::filesystem::exists(::heed::test_data() / (name))) \
  GTEST_SKIP() << "no " << (::heed::test_data() / (name)) << "; set HEED_TEST_DATA to have this run"
