#pragma once

namespace heed {

inline constexpr const char* version = "0.2.0";

}  // namespace heed
