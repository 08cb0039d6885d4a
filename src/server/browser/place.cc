#include "server/place.h"

namespace heed::server {

bool is_server() { return false; }

}  // namespace heed::server
