#pragma once

namespace heed {

inline constexpr const char* version = "0.1.0";

}  // namespace heed
