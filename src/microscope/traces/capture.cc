#include "microscope/traces/capture.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

// Copies any strided view, dimension by dimension; rows at a time where the last one is dense.
void copy(View<const float> from, float*& to) {
  if (from.rank() == 0) {
    *to++ = *from.data();
    return;
  }
  if (from.rank() == 1 && (from.stride(0) == 1 || from.extent(0) == 1)) {
    to = std::copy_n(from.data(), from.extent(0), to);
    return;
  }
  for (std::int64_t i = 0; i < from.extent(0); ++i) copy(from[i], to);
}

}  // namespace

bool matches_glob(std::string_view name, std::string_view pattern) {
  // The position of the last star, and the end of what it matches. Backtracking to the last star
  // suffices: it can match whatever an earlier star could.
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  std::size_t at = 0;
  std::size_t in_name = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = in_name;
    } else if (at < pattern.size() && pattern[at] == name[in_name]) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

Capture::Capture(const std::vector<std::string>& patterns, std::int64_t layers) {
  const std::vector<Site> every = all_sites(layers);
  for (const std::string& pattern : patterns) {
    const std::size_t before = sites_.size();
    for (const Site& site : every) {
      if (!matches_glob(site_name(site), pattern)) continue;
      sites_.push_back(site);
    }
    require(sites_.size() > before, ErrorCode::invalid_argument,
            "no probe point of a model with {} layers is called '{}'; names look like "
            "blocks.0.attn.hook_pattern, and * stands for any part",
            layers, pattern);
  }
}

bool Capture::wants(const Site& site) const {
  return std::find(sites_.begin(), sites_.end(), site) != sites_.end();
}

void Capture::observe(const Site& site, View<const float> values) {
  if (!wants(site)) return;
  Tensor<float> kept(values.shape());
  float* to = kept.data();
  copy(values, to);
  values_.insert_or_assign(site_name(site), std::move(kept));
}

const Tensor<float>& Capture::at(const Site& site) const {
  const std::string name = site_name(site);
  const auto found = values_.find(name);
  require(found != values_.end(), ErrorCode::not_found, "'{}' was not captured", name);
  return found->second;
}

Tensor<float> Capture::take(const Site& site) {
  at(site);
  return std::move(values_.extract(site_name(site)).mapped());
}

}  // namespace heed
