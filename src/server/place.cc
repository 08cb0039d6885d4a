#include "server/place.h"

namespace heed::server {

bool is_server() { return true; }

}  // namespace heed::server
