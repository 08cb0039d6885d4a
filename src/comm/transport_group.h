// A group over a transport.
#pragma once

#include <memory>

#include "comm/group.h"
#include "comm/transport.h"

namespace heed {

// Joins the group. Borrows the transport, which is finished with the group. Throws
// Error{input_output} when it cannot.
std::unique_ptr<Group> transport_group(const HeedTransport& transport);

}  // namespace heed
