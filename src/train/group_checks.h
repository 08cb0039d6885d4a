// What all processes of a group have to have in common.
#pragma once

#include "comm/group.h"
#include "train/run_directory.h"

namespace heed {

// Throws AgreedError{conflict} unless every process of the group trains the same: run directory,
// settings, text, tokenizer, position, and this version of heed.
void require_same_run(Group& group, const RunDirectory& directory, const RunRecord& record,
                      const RunPosition& position);

// Throws AgreedError{diverged} with `message` and the first process whose own number is not finite;
// alone Error{diverged}.
[[noreturn]] void fail_diverged(Group& group, double own, const std::string& message);

}  // namespace heed
