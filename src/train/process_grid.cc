#include "train/process_grid.h"

#include <fmt/format.h>

#include <deque>

#include "base/error.h"

namespace heed {
namespace {

class GroupRing final : public KeyValueRing {
 public:
  GroupRing(Group& group, const ProcessGrid& grid)
      : KeyValueRing(grid.place()), group_(group), first_(grid.ring() * grid.place().members) {}

  void begin(std::span<const float> sent, std::span<float> received) override {
    under_way_.push_back(group_.begin_shift({.sent = std::as_bytes(sent),
                                             .to = rank_after(1),
                                             .received = std::as_writable_bytes(received),
                                             .from = rank_after(place().members - 1)}));
  }
  void advance() override {
    if (!under_way_.empty()) group_.progress();
  }
  void finish() override {
    check(!under_way_.empty(), "what is finished was begun");
    group_.wait(*under_way_.front());
    under_way_.pop_front();
  }

  double sum(double value) override {
    const std::vector<double> all = gather(group_, value);
    double total = 0;
    const auto first = static_cast<std::size_t>(first_);
    const auto members = static_cast<std::size_t>(place().members);
    for (std::size_t member = 0; member < members; ++member) total += all[first + member];
    return total;
  }

 private:
  int rank_after(int steps) const { return first_ + (place().member + steps) % place().members; }

  Group& group_;
  int first_;  // rank of member 0
  std::deque<std::shared_ptr<const Exchange>> under_way_;
};

}  // namespace

ProcessGrid::ProcessGrid(const Group& group, const TrainSettings& settings)
    : rank_(group.rank()), processes_(group.size()), batch_size_(settings.batch_size) {
  const std::int64_t members = settings.sequence_parallel;
  const std::int64_t chunks = RingPlace::chunks * members;
  require(processes_ % members == 0, ErrorCode::invalid_argument,
          "sequence_parallel is {}, but {}: start a multiple of {} with mpirun, or set it to a "
          "divisor of the number of processes",
          members,
          processes_ == 1 ? "1 process trains" : fmt::format("{} processes train", processes_),
          members);
  require(members == 1 || settings.sequence() % chunks == 0, ErrorCode::invalid_argument,
          "{} processes cannot share a sequence of {} tokens: each takes two of {} equal chunks; "
          "choose a sequence_length that is a multiple of {}, or another sequence_parallel",
          members, settings.sequence(), chunks, chunks);
  place_ = {.member = static_cast<int>(rank_ % members),
            .members = static_cast<int>(members),
            .positions = settings.sequence()};
  require(batch_size_ >= rings(), ErrorCode::invalid_argument,
          "{} {} cannot share a batch of {}: each takes whole sequences; start fewer, or raise "
          "batch_size",
          rings(), members == 1 ? "processes" : "rings of processes", batch_size_);
}

BatchShare ProcessGrid::share() const {
  return {batch_size_ * ring() / rings(), batch_size_ * (ring() + 1) / rings()};
}

std::unique_ptr<KeyValueRing> make_ring(Group& group, const ProcessGrid& grid) {
  if (grid.place().members == 1) return nullptr;
  return std::make_unique<GroupRing>(group, grid);
}

}  // namespace heed
