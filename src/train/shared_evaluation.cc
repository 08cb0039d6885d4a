#include "train/shared_evaluation.h"

namespace heed {

std::vector<std::vector<WindowLoss>> gather_losses(Group& group,
                                                   const std::vector<WindowLoss>& own) {
  std::string bytes(own.size() * sizeof(WindowLoss), '\0');
  std::memcpy(bytes.data(), own.data(), bytes.size());
  std::vector<std::vector<WindowLoss>> all;
  for (const std::string& each : gather(group, bytes)) {
    std::vector<WindowLoss>& losses = all.emplace_back(each.size() / sizeof(WindowLoss));
    std::memcpy(losses.data(), each.data(), each.size());
  }
  return all;
}

}  // namespace heed
