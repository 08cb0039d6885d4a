// URLs, read and written by libcurl.
#pragma once

#include <string>
#include <string_view>

namespace heed {

// Scheme, host and port, such as "https://huggingface.co:443": where a secret may be sent that is
// meant for one server. Empty for a URL that cannot be read or is neither http nor https.
std::string url_origin(const std::string& url);

// Checks the address of a server, such as "https://huggingface.co" or "http://127.0.0.1:8080/hub",
// and returns it without a slash at its end. Throws Error{invalid_argument} naming `source` for
// other schemes, and for URLs with a user, a password, a query or a fragment.
std::string checked_endpoint(const std::string& url, std::string_view source);

// For messages: the query of a signed address is a secret, and long.
std::string without_query(const std::string& url);

// Throws Error{input_output} unless a client that is at `from` may go on to `to`: to an address
// with https or http, but never from https to http.
void check_redirect(const std::string& from, const std::string& to);

// A segment of a path: every byte but letters, digits and -._~ as %XX.
std::string escape_url_segment(std::string_view text);

}  // namespace heed
