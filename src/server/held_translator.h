// The translator that a server holds beside its model.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "engine/loaded_translator.h"

namespace heed::server {

// Loaded when it is first used, so that servers which nobody asks for translations neither wait for
// it nor keep it in memory. For any thread.
class HeldTranslator {
 public:
  explicit HeldTranslator(std::function<LoadedTranslator()> load) : load_(std::move(load)) {}
  HeldTranslator(const HeldTranslator&) = delete;
  HeldTranslator& operator=(const HeldTranslator&) = delete;

  // Stays where it is. Throws what loading throws; the next call then tries again.
  const LoadedTranslator& get();

  bool is_loaded() const;

 private:
  std::function<LoadedTranslator()> load_;
  mutable std::mutex mutex_;
  std::optional<LoadedTranslator> translator_;
};

}  // namespace heed::server
