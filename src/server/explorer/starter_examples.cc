#include "server/explorer/examples.h"

namespace heed::server {

std::span<const Example> starter_examples() { return {}; }

}  // namespace heed::server
