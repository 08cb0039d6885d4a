// Numbers with units: "10Gbit", "64GiB", "50us", "300B".
#pragma once

#include <string>

namespace heed {

enum class Quantity {
  count,   // 300B, 1.5T, 3e11
  bytes,   // 512GB, 64GiB
  rate,    // bytes a second: 10Gbit, 1.2GB
  time,    // seconds: 50us, 1ms
  number,  // as it is: 0.5
};

// In the quantity's base unit. Throws Error{invalid_argument}: not a finite number, another unit.
double parse_quantity(const std::string& text, Quantity quantity);

// Why parse_quantity() would refuse the text; empty where it would not.
std::string quantity_problem(const std::string& text, Quantity quantity);

}  // namespace heed
