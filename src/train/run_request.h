// What a run takes from its request.
#pragma once

#include "comm/group.h"
#include "train/trainer.h"

namespace heed {

// The group of the request, or one of this process alone.
Group& group_of(const TrainRequest& request);

// The observer of the first process; one that ignores everything for the others.
TrainObserver& observer_of(const TrainRequest& request, const Group& group);

// A process of a group cannot leave a step that the others go on with: it is stopped between them.
TrainRequest without_stop(TrainRequest request);

// With an absolute path of the tokenizer, as runs are resumed from anywhere, and without a preset's
// end-of-text token, as the tokenizer has its own.
TrainSettings settings_of(const TrainRequest& request);

}  // namespace heed
