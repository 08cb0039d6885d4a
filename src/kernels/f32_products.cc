#include "heed/f32_products.h"

#include <atomic>
#include <cstdlib>
#include <optional>

#include "base/error.h"

namespace heed {
namespace {

std::optional<F32Products> products_named(std::string_view name) {
  for (const F32Products products : {F32Products::f32, F32Products::tf32}) {
    if (name == f32_products_name(products)) return products;
  }
  return std::nullopt;
}

F32Products initial_products() {
  const char* const name = std::getenv("HEED_F32_PRODUCTS");
  if (name == nullptr || *name == '\0') return F32Products::f32;
  const std::optional<F32Products> products = products_named(name);
  require(products.has_value(), ErrorCode::invalid_argument,
          "HEED_F32_PRODUCTS must be f32 or tf32, not '{}'", name);
  return *products;
}

std::atomic<F32Products>& products_in_use() {
  static std::atomic<F32Products> products = initial_products();
  return products;
}

}  // namespace

void set_f32_products(F32Products products) { products_in_use() = products; }
F32Products f32_products() { return products_in_use(); }

const char* f32_products_name(F32Products products) noexcept {
  return products == F32Products::tf32 ? "tf32" : "f32";
}

F32Products parse_f32_products(std::string_view name) {
  const std::optional<F32Products> products = products_named(name);
  require(products.has_value(), ErrorCode::invalid_argument,
          "there are no f32 products '{}': expected f32 or tf32", name);
  return *products;
}

}  // namespace heed
