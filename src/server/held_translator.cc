#include "server/held_translator.h"

namespace heed::server {

const LoadedTranslator& HeldTranslator::get() {
  const std::lock_guard lock(mutex_);
  if (!translator_) translator_.emplace(load_());
  return *translator_;
}

bool HeldTranslator::is_loaded() const {
  const std::lock_guard lock(mutex_);
  return translator_.has_value();
}

}  // namespace heed::server
