// Values that interventions take from recorded passes: collected while a request is read, and
// filled in by one replay of each pass once the request is known to fit.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/progress.h"
#include "microscope/intervene/intervention.h"
#include "model/probe.h"

namespace heed::server {

class RecordedValues {
 public:
  // Shows every point of a pass over one text, B = 1.
  using Replay = std::function<void(Probe&)>;

  // What an intervention gets: SetRow with the mean over all positions; factor times that mean
  // added to its AddVector, which is there already; ReplaceWith all values, which interventions
  // share; or ReplaceWith the rows from `from` on at the positions [first, last].
  struct Mean {};
  struct AddedMean {
    float factor = 1.0F;
  };
  struct All {};
  struct Rows {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t from = 0;
  };
  using Form = std::variant<Mean, AddedMean, All, Rows>;

  // `id` identifies the pass among those of the request. Returns whether memory is needed: false
  // where another intervention has the same values.
  bool want(const std::string& id, const Replay& replay, const Point& point,
            std::size_t intervention, const Form& form);

  // Sets the changes of the interventions. Throws Error{interrupted} when stopped, and what replays
  // throw.
  void fill(std::vector<Intervention>& interventions, StopFlag stop) const;

 private:
  class Filler;
  struct Wanted {
    std::size_t intervention = 0;
    Form form;
  };
  using PointKey = std::tuple<PointKind, std::int64_t, StackSite>;
  static PointKey key_of(const Point& point) { return {point.kind, point.layer, point.site}; }
  struct WantedPoint {
    Point point;
    std::vector<Wanted> wanted{};
    bool is_shared = false;  // all of its values are wanted
  };
  using WantedPoints = std::map<PointKey, WantedPoint>;
  struct Pass {
    std::string id{};
    Replay replay;
    WantedPoints points{};
  };
  std::list<Pass> passes_;  // in the order in which they were named
};

}  // namespace heed::server
