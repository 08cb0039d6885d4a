// A page has one process.
#include "base/shared_bytes.h"

namespace heed {

bool SharedBytes::are_wanted() { return false; }
std::shared_ptr<SharedBytes> SharedBytes::find(const std::string&, std::size_t) { return nullptr; }
std::shared_ptr<SharedBytes> SharedBytes::make(const std::string&, std::size_t) { return nullptr; }
SharedBytes::~SharedBytes() = default;
void SharedBytes::seal() {}

}  // namespace heed
