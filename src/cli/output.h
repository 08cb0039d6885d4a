// Results go to standard output, through here; everything else goes to standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace heed::cli {

// Writes to standard output. Throws Error{input_output} when it cannot be written (a full disk).
void print(std::string_view text);
void flush_output();

// One JSON document and a newline.
void print_json(const OrderedJson& document);

}  // namespace heed::cli
