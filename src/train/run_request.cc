#include "train/run_request.h"

#include "train/absolute_path.h"

namespace heed {

TrainObserver& observer_of(const TrainRequest& request, const Group& group) {
  static TrainObserver none;
  return request.observer != nullptr && group.is_first() ? *request.observer : none;
}

Group& group_of(const TrainRequest& request) {
  static const std::unique_ptr<Group> alone = single_group();
  return request.group != nullptr ? *request.group : *alone;
}

TrainRequest without_stop(TrainRequest request) {
  if (!group_of(request).is_alone()) request.stop = nullptr;
  return request;
}

TrainSettings settings_of(const TrainRequest& request) {
  TrainSettings settings = request.settings;
  if (request.start == RunStart::fresh && request.from.empty()) settings.model.end_of_text = -1;
  if (settings.tokenizer != "char" && settings.tokenizer != "bpe") {
    settings.tokenizer = absolute_text(settings.tokenizer);
  }
  return settings;
}

}  // namespace heed
