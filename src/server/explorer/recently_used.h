// Stored passes by their id, in the order of their last use.
#pragma once

#include <algorithm>
#include <iterator>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace heed::server {

// `Stored` has a member `id`.
template <class Stored>
class RecentlyUsed {
 public:
  // `noun` is what messages call one: "trace".
  explicit RecentlyUsed(const char* noun) : noun_(noun) {}

  bool empty() const { return stored_.empty(); }
  std::size_t size() const { return stored_.size(); }
  const std::list<Stored>& all() const { return stored_; }  // most recently used first
  const Stored& oldest() const { return stored_.back(); }

  Stored& add(Stored stored) { return stored_.emplace_front(std::move(stored)); }
  Stored take_newest() { return taken(stored_.begin()); }
  Stored take_oldest() { return taken(std::prev(stored_.end())); }

  // Marks it as used. Throws Error{not_found}.
  Stored& use(const std::string& id) {
    const auto found = std::ranges::find(stored_, id, &Stored::id);
    require(found != stored_.end(), ErrorCode::not_found,
            "there is no {} \"{}\": it was evicted, or never created", noun_, id.substr(0, 40));
    stored_.splice(stored_.begin(), stored_, found);
    return stored_.front();
  }

  // Marks those that exist as used, and returns their number.
  std::size_t keep(const std::vector<std::string>& ids) {
    std::set<std::string> kept;
    for (const std::string& id : ids) {
      const auto found = std::ranges::find(stored_, id, &Stored::id);
      if (found == stored_.end()) continue;
      stored_.splice(stored_.begin(), stored_, found);
      kept.insert(id);
    }
    return kept.size();
  }

 private:
  Stored taken(typename std::list<Stored>::iterator at) {
    Stored stored = std::move(*at);
    stored_.erase(at);
    return stored;
  }

  const char* noun_;
  std::list<Stored> stored_;
};

}  // namespace heed::server
