// Decimal text of floats, whatever the locale of the process.
#pragma once

namespace heed {

// The double that prints as the shortest decimal that reads back as `value`: 0.1 for 0.1F.
double shortest_decimal(float value);

// The double nearest to `value` rounded to so many significant decimal digits, from 1 to 17.
double rounded_decimal(float value, int digits);

}  // namespace heed
