// A browser's page downloads by itself, and writes the files where load_model() finds them.
#include "download/http_client.h"

#include "base/error.h"

namespace heed {
namespace {

[[noreturn]] void refuse() {
  fail(ErrorCode::unsupported, "heed in a browser does not download: its page does");
}

}  // namespace

struct HttpClient::Transfer {};

std::string url_origin(const std::string&) { return {}; }
std::string checked_endpoint(const std::string&, std::string_view) { refuse(); }
std::string without_query(const std::string& url) { return url.substr(0, url.find('?')); }
void check_redirect(const std::string&, const std::string&) { refuse(); }
std::string escape_url_segment(std::string_view) { refuse(); }

HttpClient::HttpClient(HttpOptions) { refuse(); }
HttpClient::~HttpClient() = default;
const HttpOptions& HttpClient::options() const { refuse(); }
HttpReply HttpClient::get(const HttpRequest&, HttpBody&) { refuse(); }

}  // namespace heed
