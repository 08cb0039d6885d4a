#include "comm/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace heed {
namespace {

struct Failure {
  ErrorCode code;
  std::string message;
};

Failure described(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "out of memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, error.what()};
  }
}

bool is_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::string process_prefix(const Group& group, int rank) {
  if (group.is_alone()) return "";
  return fmt::format("process {} of {}: ", rank, group.size());
}

void agree(Group& group, const std::exception_ptr& failure) {
  if (group.is_alone()) {
    if (failure) std::rethrow_exception(failure);
    return;
  }
  // The code as a first character.
  std::string own;
  if (failure) {
    const auto [code, message] = described(failure);
    own = static_cast<char>('a' + static_cast<int>(code)) + message;
  }
  const std::vector<std::string> all = gather(group, own);
  const auto failed = [](const std::string& text) { return !text.empty(); };
  const auto first = std::ranges::find_if(all, failed);
  if (first == all.end()) return;
  const bool is_everywhere =
      std::ranges::all_of(all, [&](const auto& text) { return text == own; });
  const auto rank = static_cast<int>(first - all.begin());
  const bool speaks = rank == group.rank();
  if (speaks && !is_error(failure)) std::rethrow_exception(failure);
  throw AgreedError(static_cast<ErrorCode>(first->front() - 'a'),
                    (is_everywhere ? "" : process_prefix(group, rank)) + first->substr(1), speaks);
}

}  // namespace heed
