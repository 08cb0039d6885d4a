// What this process of a group holds of a model that it trains with the others, and how parameters
// and gradients come and go while a pass computes:
//   stage 1  moments of the own slices; all parameters and gradients
//   stage 2  also gradients of the own slices, and of the parts that backward is at
//   stage 3  also parameters of the own slices, and of the parts that a pass reads
// (ZeRO, Rajbhandari et al. 2020). Gradients are added up, part by part, while backward goes on;
// parameters arrive before a pass reads them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "model/parameters.h"
#include "model/probe.h"
#include "train/settings.h"
#include "train/shards.h"

namespace heed {

class ShardedModel final : public ParameterSchedule {
 public:
  // Borrows both; the settings are read once plan() is called.
  ShardedModel(const TrainSettings& settings, Group& group);
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  // Divides a model, before any of it is in memory.
  void plan(const Architecture& architecture);
  const Shards& shards() const { return *shards_; }
  ArenaMemory parameter_memory() const { return memory_from(3); }
  ArenaMemory gradient_memory() const { return memory_from(2); }
  // Whether no process has all parameters, so that all run the model together or not at all.
  bool runs_together() const { return stage_ == 3; }

  // Takes charge of them: they are made with the memory above, and stay where they are.
  void hold(Parameters& parameters);
  void hold(Gradients& gradients);
  // Fill the parameters that this process has: as Parameters::initialize, or from those of a model.
  void initialize(std::uint64_t seed);
  void copy(std::span<const std::byte> whole);
  std::size_t size() const { return parameters_->all().size(); }  // of the arena
  // All parameters, for the sink of the first process. All processes call it.
  NumberStream parameter_stream();

  // Gradients are zero afterwards.
  void begin_step();
  // Before each of the passes that gradients of a step are sums of.
  enum class Pass { last, not_last };
  void begin_pass(Pass pass);
  // Own gradients are then those of all processes, and the others' are not used any more.
  void finish_gradients();
  // After an update of the own parameters: the others get them, while they go on.
  void share_parameters();
  // Nothing is under way afterwards. In stages 1 and 2 every process then has all parameters.
  void finish();

  // Moves exchanges on from within a pass; null where this process is alone.
  Probe* probe() { return group_.is_alone() ? nullptr : &probe_; }

  // The peak of what it has held of parameters and gradients, in stages where that changes.
  std::size_t peak_bytes() const { return peak_bytes_; }

  void will_read(const ParameterPart& part) override;
  void has_read(const ParameterPart& part) override;
  void will_add(const ParameterPart& part) override;
  void has_added(const ParameterPart& part, GradientState state) override;

 private:
  using Exchanges = std::vector<std::shared_ptr<const Exchange>>;

  // A part of the model.
  struct Held {
    ParameterPart part;
    std::vector<std::size_t> segments;
    std::vector<ArenaRange> others;  // slices of other processes
    // Parameters:
    bool is_here = true;  // or arriving
    int readers = 0;
    int reads = 0;  // since a pass began; it reads some parts several times
    Exchanges arriving;
    // Gradients:
    bool has_room = true;
    bool is_summed = false;  // in this step
    Exchanges sums;
  };

  class ProgressProbe final : public Probe {
   public:
    explicit ProgressProbe(ShardedModel& model) : model_(model) {}
    void tick() override { model_.progress(); }
    bool wants(const Point&) const override { return false; }
    void observe(const Point&, View<const float>) override {}

   private:
    ShardedModel& model_;
  };

  ArenaMemory memory_from(int stage) const {
    return stage_ >= stage ? ArenaMemory::reserved : ArenaMemory::whole;
  }
  Held* find(const ParameterPart& part);
  std::vector<ArenaRange> own_ranges() const;
  void progress();
  void wait(Exchanges& exchanges);
  void bring(Held& part);
  void drop(Held& part);
  void drop_unread(const Held* kept, const Held* also_kept);
  void forget_order();
  void forget_reads();
  void begin_sums(Held& part);
  void finish_sums(Held& part);
  // Memory for the others' slices of a part, in one of the arenas.
  void make_room(Arena<float>& arena, const Held& part);
  void give_back(Arena<float>& arena, const Held& part);
  void hold_own(Arena<float>& arena);
  void count(std::ptrdiff_t bytes);

  const TrainSettings& settings_;
  Group& group_;
  int stage_ = 1;
  std::int64_t piece_rows_ = 0;  // of tables that come in pieces
  Wire wire_ = Wire::f32;
  std::optional<Shards> shards_;
  std::vector<Held> parts_;
  Parameters* parameters_ = nullptr;
  Gradients* gradients_ = nullptr;
  Pass pass_ = Pass::last;
  std::deque<Held*> summing_;  // parts whose sums are under way, in the order they began
  // What was read of late, and how often the last part had been read in that pass.
  struct Moment {
    std::ptrdiff_t before = -1;
    std::ptrdiff_t last = -1;
    int reads = 0;
    bool operator<(const Moment& other) const {
      return std::tie(before, last, reads) < std::tie(other.before, other.last, other.reads);
    }
  };
  // The part that was read next at such a moment the last time, to bring it before it is read.
  std::map<Moment, std::ptrdiff_t> order_;
  Moment now_;
  std::size_t bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  ProgressProbe probe_{*this};
};

}  // namespace heed
