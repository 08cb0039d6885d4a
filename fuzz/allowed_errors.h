// Which errors a target allows: what hostile input may throw. Anything else is a finding.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "base/error.h"

namespace heed::fuzz {

// Calls `body`, which may throw an Error of one of these codes.
template <class Body>
void allow_errors(std::initializer_list<ErrorCode> codes, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    if (std::ranges::find(codes, error.code()) == codes.end()) std::abort();
  }
}

// Any Error but that of a defect.
template <class Body>
void allow_errors(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
}

}  // namespace heed::fuzz
