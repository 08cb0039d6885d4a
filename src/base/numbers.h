// Numbers as text, whatever the locale of the process: decimals, quantities with units, lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// The double that prints as the shortest decimal that reads back as `value`: 0.1 for 0.1F.
double shortest_decimal(float value);

// The double nearest to `value` rounded to 1 to 17 significant decimal digits.
double rounded_decimal(float value, int digits);

// 1234567 as "1,234,567".
std::string grouped(long long number);

// Numbers with units: "10Gbit", "64GiB", "50us", "300B".
enum class Quantity {
  count,   // 300B, 1.5T, 3e11
  bytes,   // 512GB, 64 GiB
  rate,    // bytes a second: 10Gbit, 1.2GB
  time,    // seconds: 50us, 1ms
  number,  // as it is: 0.5
};

// In the quantity's base unit. Throws Error{invalid_argument}: not a finite number, another unit.
double parse_quantity(const std::string& text, Quantity quantity);

// Why parse_quantity() would refuse the text; empty where it would not.
std::string quantity_problem(const std::string& text, Quantity quantity);

// Splits "a, b" into its items, without the spaces around them. Throws Error{invalid_argument} for
// an empty item, as in "a,,b" or "a,". The items borrow from `text`.
std::vector<std::string_view> split_list(std::string_view text);

// Parses "0-3,7,-1" into 0, 1, 2, 3, 7, -1; returns an empty list for an empty text. Throws
// Error{invalid_argument} for an item that is not a number or a range, and for more than a million
// numbers.
std::vector<std::int64_t> parse_indices(const std::string& text);

// Whole bytes: "1GiB", "500 MB" or "4096". Throws Error{invalid_argument} for anything else.
std::int64_t parse_bytes(const std::string& text);

}  // namespace heed
