#include "train/sharded_model.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace heed {
namespace {

// Parts whose sums are under way beside the one that backward is at: their gradients take memory.
constexpr std::size_t max_summing = 2;

// What a range takes of an arena, in bytes: pages that hold nothing else, and its numbers before
// and after them.
struct RangeMemory {
  std::span<std::byte> before;
  std::span<std::byte> pages;
  std::span<std::byte> after;

  RangeMemory(Arena<float>& arena, const ArenaRange& range) {
    const std::span<std::byte> all =
        std::as_writable_bytes(arena.all().subspan(range.begin, range.size()));
    const std::size_t begin = range.begin * sizeof(float), end = range.end * sizeof(float);
    const std::size_t first = (begin + page_bytes() - 1) / page_bytes() * page_bytes();
    const std::size_t last = end / page_bytes() * page_bytes();
    if (first >= last) {
      before = all;
      return;
    }
    before = all.subspan(0, first - begin);
    pages = all.subspan(first - begin, last - first);
    after = all.subspan(last - begin);
  }

  void clear_ends() const {
    std::ranges::fill(before, std::byte{});
    std::ranges::fill(after, std::byte{});
  }
};

}  // namespace

ShardedModel::ShardedModel(const TrainSettings& settings, Group& group)
    : settings_(settings), group_(group) {}

void ShardedModel::plan(const Architecture& architecture) {
  stage_ = group_.is_alone() ? 1 : static_cast<int>(settings_.shard);
  wire_ = settings_.wire;
  piece_rows_ = stage_ == 3 ? table_piece_rows(architecture) : 0;
  const std::vector<PartRange> ranges = part_ranges(architecture, piece_rows_);
  shards_.emplace(ranges, group_);
  parts_.clear();
  for (const PartRange& range : ranges) {
    if (find(range.part) == nullptr) parts_.push_back({.part = range.part});
    Held& part = *find(range.part);
    for (std::size_t i = 0; i < shards_->segments().size(); ++i) {
      const ArenaSegment& segment = shards_->segments()[i];
      if (segment.begin < range.begin || segment.begin >= range.end) continue;
      part.segments.push_back(i);
      const ArenaRange own = segment.slice(group_.rank());
      for (const ArenaRange& other : {ArenaRange{segment.begin, own.begin},
                                      ArenaRange{own.end, segment.begin + segment.size()}}) {
        if (other.size() > 0) part.others.push_back(other);
      }
    }
  }
}

// Of the arena of parameters.
std::vector<ArenaRange> ShardedModel::own_ranges() const {
  if (stage_ == 3) return shards_->own();
  return {{0, parameters_->all().size()}};
}

void ShardedModel::hold(Parameters& parameters) {
  parameters_ = &parameters;
  if (group_.is_alone()) return;
  parameters.set_schedule(this, piece_rows_);
  if (stage_ < 3) return;
  hold_own(parameters.arena());
  for (Held& part : parts_) part.is_here = false;
}

void ShardedModel::hold(Gradients& gradients) {
  gradients_ = &gradients;
  if (group_.is_alone()) return;
  gradients.set_schedule(this, piece_rows_);
  if (stage_ < 2) return;
  hold_own(gradients.arena());
  for (Held& part : parts_) part.has_room = false;
}

// Commits what no part gives back: own slices, and pages that hold something of several ranges.
void ShardedModel::hold_own(Arena<float>& arena) {
  const std::span<std::byte> all = std::as_writable_bytes(arena.all());
  std::size_t at = 0;
  const auto commit_until = [&](std::size_t end) {
    commit_memory(all.subspan(at, end - at));
    count(static_cast<std::ptrdiff_t>(end - at));
  };
  std::vector<ArenaRange> others;
  for (const Held& part : parts_)
    others.insert(others.end(), part.others.begin(), part.others.end());
  std::ranges::sort(others, {}, &ArenaRange::begin);
  for (const ArenaRange& other : others) {
    const std::span<std::byte> pages = RangeMemory(arena, other).pages;
    if (pages.empty()) continue;
    const auto begin = static_cast<std::size_t>(pages.data() - all.data());
    commit_until(begin);
    at = begin + pages.size();
  }
  commit_until(all.size());
}

void ShardedModel::initialize(std::uint64_t seed) {
  for (const ArenaRange& range : own_ranges()) {
    parameters_->initialize(seed, range.begin, range.end);
  }
}

void ShardedModel::copy(std::span<const std::byte> whole) {
  check(whole.size() == parameters_->all().size_bytes(), "the parameters of the same model");
  for (const ArenaRange& range : own_ranges()) {
    std::memcpy(parameters_->all().data() + range.begin, whole.data() + range.begin * sizeof(float),
                range.size() * sizeof(float));
  }
}

NumberStream ShardedModel::parameter_stream() {
  return [this](const NumberSink& sink) {
    finish();
    if (stage_ == 3) return shards_->stream_arena(parameters_->all(), sink);
    sink(parameters_->all());
  };
}

void ShardedModel::begin_step() {
  if (stage_ < 2) return gradients_->clear();
  for (const ArenaRange& range : shards_->own()) {
    const RangeMemory memory(gradients_->arena(), range);
    memory.clear_ends();
    clear_memory(memory.pages);
  }
}

void ShardedModel::begin_pass(Pass pass) {
  pass_ = pass;
  forget_order();
}

void ShardedModel::finish_gradients() {
  if (group_.is_alone()) return;
  for (Held& part : parts_) {
    if (part.is_summed) continue;  // those that no pass has met have zeros
    will_add(part.part);
    begin_sums(part);
  }
  while (!summing_.empty()) finish_sums(*summing_.front());
  for (Held& part : parts_) part.is_summed = false;
}

void ShardedModel::share_parameters() {
  if (group_.is_alone()) return;
  forget_order();
  if (stage_ == 3) return drop_unread(nullptr, nullptr);
  for (Held& part : parts_) bring(part);
}

void ShardedModel::finish() {
  while (!summing_.empty()) finish_sums(*summing_.front());
  for (Held& part : parts_) wait(part.arriving);
}

ShardedModel::Held* ShardedModel::find(const ParameterPart& part) {
  const auto found = std::ranges::find(parts_, part, &Held::part);
  return found == parts_.end() ? nullptr : &*found;
}

void ShardedModel::progress() {
  group_.progress();
  while (!summing_.empty() && std::ranges::all_of(summing_.front()->sums, &Exchange::is_done)) {
    finish_sums(*summing_.front());
  }
}

void ShardedModel::wait(Exchanges& exchanges) {
  for (const auto& exchange : exchanges) group_.wait(*exchange);
  exchanges.clear();
}

void ShardedModel::will_read(const ParameterPart& which) {
  Held* const part = find(which);
  if (part == nullptr) return;
  if (stage_ == 3) {
    const std::ptrdiff_t index = part - parts_.data();
    Held* next = nullptr;
    if (index != now_.last) {
      order_[now_] = index;
      // A pass begins with what comes before the blocks.
      if (which.layer < 0 && which.piece < 0) forget_reads();
      now_ = {.before = now_.last, .last = index, .reads = ++part->reads};
      const auto expected = order_.find(now_);
      if (expected != order_.end()) next = &parts_[static_cast<std::size_t>(expected->second)];
      drop_unread(part, next);
    }
    bring(*part);
    if (next != nullptr) bring(*next);
  }
  wait(part->arriving);
  ++part->readers;
}

void ShardedModel::has_read(const ParameterPart& which) {
  if (Held* const part = find(which)) --part->readers;
}

// The order of parts differs between passes, and parameters that arrived before an update are old.
void ShardedModel::forget_order() {
  now_ = {};
  forget_reads();
}

void ShardedModel::forget_reads() {
  for (Held& part : parts_) part.reads = 0;
}

void ShardedModel::bring(Held& part) {
  if (stage_ == 3) {
    if (part.is_here) return;
    make_room(parameters_->arena(), part);
    part.is_here = true;
  }
  for (const std::size_t index : part.segments) {
    const ArenaSegment& segment = shards_->segments()[index];
    std::vector<std::size_t> starts = segment.starts;
    for (std::size_t& start : starts) start *= sizeof(float);
    const std::span<float> values = parameters_->all().subspan(segment.begin, segment.size());
    part.arriving.push_back(group_.begin_all_gather(std::as_writable_bytes(values), starts));
  }
}

// What has been read stays until something else is read: it may be read again.
void ShardedModel::drop_unread(const Held* kept, const Held* also_kept) {
  for (Held& part : parts_) {
    if (part.is_here && part.readers == 0 && &part != kept && &part != also_kept) drop(part);
  }
}

void ShardedModel::drop(Held& part) {
  wait(part.arriving);
  give_back(parameters_->arena(), part);
  part.is_here = false;
}

void ShardedModel::will_add(const ParameterPart& which) {
  Held* const part = find(which);
  if (part == nullptr) return;
  if (!part->sums.empty()) finish_sums(*part);
  if (part->has_room) return;
  while (summing_.size() >= max_summing) finish_sums(*summing_.front());
  make_room(gradients_->arena(), *part);
  part->has_room = true;
}

void ShardedModel::has_added(const ParameterPart& which, GradientState state) {
  // Where all gradients have memory, they are added up once a step.
  if (stage_ == 1 && (pass_ == Pass::not_last || state == GradientState::partial)) return;
  if (Held* const part = find(which)) begin_sums(*part);
}

void ShardedModel::begin_sums(Held& part) {
  part.is_summed = true;
  for (const std::size_t index : part.segments) {
    const ArenaSegment& segment = shards_->segments()[index];
    part.sums.push_back(group_.begin_reduce_scatter(
        gradients_->all().subspan(segment.begin, segment.size()), segment.starts, wire_));
  }
  summing_.push_back(&part);
  progress();
}

void ShardedModel::finish_sums(Held& part) {
  wait(part.sums);
  std::erase(summing_, &part);
  if (stage_ < 2) return;
  give_back(gradients_->arena(), part);
  part.has_room = false;
}

void ShardedModel::make_room(Arena<float>& arena, const Held& part) {
  for (const ArenaRange& other : part.others) {
    const std::span<std::byte> pages = RangeMemory(arena, other).pages;
    commit_memory(pages);
    count(static_cast<std::ptrdiff_t>(pages.size()));
  }
}

void ShardedModel::give_back(Arena<float>& arena, const Held& part) {
  for (const ArenaRange& other : part.others) {
    const RangeMemory memory(arena, other);
    memory.clear_ends();
    release_memory(memory.pages);
    count(-static_cast<std::ptrdiff_t>(memory.pages.size()));
  }
}

void ShardedModel::count(std::ptrdiff_t bytes) {
  bytes_ += static_cast<std::size_t>(bytes);
  peak_bytes_ = std::max(peak_bytes_, bytes_);
}

}  // namespace heed
