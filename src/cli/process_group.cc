#include "cli/process_group.h"

#include <new>

#include "base/threads.h"
#include "cli/failure.h"
#include "comm/agreement.h"
#include "comm/launch.h"

namespace heed::cli {

void in_process_group(const std::function<void(Group&)>& work) {
  const std::unique_ptr<Group> group = launched_group();
  if (group->is_alone()) return work(*group);
  share_machine(group->neighbours());
  const auto end_all = [&](const std::string& message, int status) {
    say(process_prefix(*group, group->rank()) + message);
    group->abort(status);
  };
  try {
    work(*group);
  } catch (const AgreedError&) {
    throw;
  } catch (const Error& error) {
    end_all(error.what(), exit_status(error.code()));
  } catch (const std::bad_alloc&) {
    end_all("out of memory", work_failed);
  }
}

}  // namespace heed::cli
