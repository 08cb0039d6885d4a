// Where heed answers.
#pragma once

namespace heed::server {

// Whether it is a server of a machine, with its disk and its connections; false: a page's own, in a
// browser.
bool is_server();

}  // namespace heed::server
