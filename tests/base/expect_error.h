// Expecting a heed::Error of a code whose message says what it must say.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "heed/error.h"

namespace heed::testing {

// Runs `work`, which must throw Error{code} with a message that contains every one of `parts`.
template <class Work, class... Parts>
void expect_error(ErrorCode code, Work&& work, const Parts&... parts) {
  std::optional<Error> caught;
  try {
    work();
  } catch (const Error& error) {
    caught = error;
  }
  if (!caught) {
    ADD_FAILURE() << "no error, expected " << error_code_name(code);
    return;
  }
  EXPECT_EQ(error_code_name(caught->code()), std::string(error_code_name(code))) << caught->what();
  for (const std::string& part : std::initializer_list<std::string>{std::string(parts)...}) {
    EXPECT_THAT(caught->what(), ::testing::HasSubstr(part));
  }
}

}  // namespace heed::testing
