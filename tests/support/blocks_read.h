// Which blocks of a model passes compute.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "model/parameter_schedule.h"
#include "model/transformer.h"

namespace heed::testing {

// The blocks whose parameters were read since the last call of taken().
class BlocksRead final : public ParameterSchedule {
 public:
  explicit BlocksRead(Transformer& model)
      : parameters_(model.parameters()), layers_(model.specification().layers) {
    parameters_.set_schedule(this);
  }
  BlocksRead(const BlocksRead&) = delete;
  BlocksRead& operator=(const BlocksRead&) = delete;
  ~BlocksRead() override { parameters_.set_schedule(nullptr); }

  std::set<std::int64_t> taken() { return std::exchange(blocks_, {}); }

  void will_read(const ParameterPart& part) override {
    if (part.layer >= 0 && part.layer < layers_) blocks_.insert(part.layer);
  }
  void has_read(const ParameterPart&) override {}
  void will_add(const ParameterPart&) override {}
  void has_added(const ParameterPart&, GradientState) override {}

 private:
  Parameters& parameters_;
  std::int64_t layers_;
  std::set<std::int64_t> blocks_;
};

}  // namespace heed::testing
