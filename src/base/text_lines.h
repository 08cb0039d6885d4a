// The lines of a text.
#pragma once

#include <string_view>
#include <vector>

namespace heed {

// Without the byte order mark (EF BB BF) that some programs put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

// Without byte order mark and line ends, which are \n or \r\n; the last line needs none. Views of
// `text`.
std::vector<std::string_view> text_lines(std::string_view text);

}  // namespace heed
