// A probe that keeps copies of what it was asked to look at.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/probe.h"
#include "tensor/tensor.h"

namespace heed {

// Whether `name` is `pattern`, where * stands for any characters: "blocks.*.attn.hook_pattern".
bool matches_glob(std::string_view name, std::string_view pattern);

class Capture final : public Probe {
 public:
  // Site names or globs of them. Throws Error{invalid_argument} for one that no site of a model
  // with `layers` layers can have.
  Capture(const std::vector<std::string>& patterns, std::int64_t layers);
  explicit Capture(std::vector<Site> sites) : sites_(std::move(sites)) {}

  bool wants(const Site& site) const override;
  void observe(const Site& site, View<const float> values) override;

  // What was seen last. Throws Error{not_found} when nothing was.
  const Tensor<float>& at(const Site& site) const;
  Tensor<float> take(const Site& site);  // the same, no longer kept
  const std::vector<Site>& sites() const { return sites_; }

 private:
  std::vector<Site> sites_;
  std::map<std::string, Tensor<float>, std::less<>> values_;  // by site name
};

}  // namespace heed
