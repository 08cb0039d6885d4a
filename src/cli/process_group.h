// A command as one of several processes that mpirun or srun started.
#pragma once

#include <functional>

#include "comm/group.h"

namespace heed::cli {

// Does `work` with the group that this process was started in, and its share of the machine's
// threads. An error that the others do not know of, or a process that dies or hangs, ends them all,
// with one message.
void in_process_group(const std::function<void(Group&)>& work);

}  // namespace heed::cli
