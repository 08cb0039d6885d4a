// Errors of a group: one member says what is wrong, and all of them end.
#pragma once

#include <exception>

#include "base/error.h"
#include "comm/group.h"

namespace heed {

// Thrown by every member at the same place. One of them speaks.
class AgreedError : public Error {
 public:
  AgreedError(ErrorCode code, const std::string& message, bool speaks)
      : Error(code, message), speaks_(speaks) {}

  bool speaks() const noexcept { return speaks_; }

 private:
  bool speaks_;
};

// Throws AgreedError on every member if any of them failed; the first that did speaks, and throws
// its failure itself if that is no Error. So does a process that is alone, whatever it is.
void agree(Group& group, const std::exception_ptr& failure);

// Does `work`, which exchanges nothing with other members, and agrees on how that went.
template <class Work>
void agreed(Group& group, Work&& work) {
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  agree(group, failure);
}

// "process 2 of 4: ", the rank being from 0, for messages; empty where there is one.
std::string process_prefix(const Group& group, int rank);

}  // namespace heed
