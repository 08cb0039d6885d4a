#include "download/hub.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "download/url.h"

namespace heed {
namespace {

constexpr std::size_t largest_listing = std::size_t{4} << 20;  // bytes: some 15,000 files

std::string environment_text(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

// HF_TOKEN, often the content of a file with a newline at its end.
std::string token_from_environment() {
  std::string token = environment_text("HF_TOKEN");
  constexpr const char* space = " \t\r\n";
  token.erase(0, token.find_first_not_of(space));
  token.erase(token.find_last_not_of(space) + 1);
  require(std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; }),
          ErrorCode::invalid_argument,
          "HF_TOKEN has characters that no token has: it must be one word of visible ASCII");
  return token;
}

std::string escape_path(std::string_view path) {
  std::string escaped;
  for (;;) {
    const std::size_t end = std::min(path.find('/'), path.size());
    escaped += escape_url_segment(path.substr(0, end));
    if (end == path.size()) return escaped;
    escaped += '/';
    path.remove_prefix(end + 1);
  }
}

class ListingBody : public HttpBody {
 public:
  explicit ListingBody(const std::string& url) : url_(url) {}

  bool begin(const HttpReply& /*reply*/) override {
    text.clear();
    return true;
  }
  void write(std::string_view bytes) override {
    require(bytes.size() <= largest_listing - text.size(), ErrorCode::corrupt_data,
            "the reply to {} has more than {} bytes", url_, largest_listing);
    text += bytes;
  }

  std::string text;

 private:
  const std::string& url_;
};

HttpOptions http_options(const HubOptions& options) {
  return {.token = options.settings.token,
          .token_origin = url_origin(options.settings.endpoint),
          .offline = options.settings.offline,
          .stop = options.stop};
}

}  // namespace

HubSettings hub_settings_from_environment() {
  HubSettings settings;
  const std::string endpoint = environment_text("HF_ENDPOINT");
  if (!endpoint.empty()) settings.endpoint = checked_endpoint(endpoint, "HF_ENDPOINT");
  settings.token = token_from_environment();
  const std::string offline = environment_text("HEED_OFFLINE");
  settings.offline = !offline.empty() && offline != "0";
  return settings;
}

Hub::Hub(HubOptions options) : options_(std::move(options)), client_(http_options(options_)) {}

void Hub::refuse(const HttpReply& reply, const HubName& name) const {
  const HubSettings& hub = options_.settings;
  const std::string page = hub.endpoint + "/" + name.repository;
  if (reply.status == 401 || reply.status == 403) {
    require(!hub.token.empty(), ErrorCode::input_output,
            "'{}' may not be read without a token ({}): it is gated, private, or not its name; if "
            "it is gated, accept its terms at {} and set HF_TOKEN to an access token",
            name.repository, reply.status, page);
    fail(ErrorCode::input_output,
         "'{}' may not be read with the token in HF_TOKEN ({}): accept the model's terms at {} "
         "with the token's account, or check the token and the name",
         name.repository, reply.status, page);
  }
  require(reply.status != 404, ErrorCode::not_found,
          "{} has no model '{}' with a revision '{}': check the name; a private model needs a "
          "token in HF_TOKEN",
          hub.endpoint, name.repository, name.revision);
}

std::string Hub::read_text(const std::string& url, const HubName& name) {
  Retries retries(options_.retry, "the list of files of '" + name.repository + "'", options_.stop);
  for (;;) {
    ListingBody body(url);
    const HttpReply reply = client_.get({.url = url}, body);
    if (reply.status == 200 && reply.failure.empty()) return std::move(body.text);
    refuse(reply, name);
    retries.wait(reply);
  }
}

HubRepository Hub::find(const HubName& name) {
  if (options_.progress) options_.progress({"finding " + name.repository});
  const std::string url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", options_.settings.endpoint,
                  escape_path(name.repository), escape_url_segment(name.revision));
  const std::string text = read_text(url, name);
  return parse_hub_repository(text, url);
}

void Hub::download(const HubName& name, const std::string& commit, const HubFile& file,
                   const std::filesystem::path& path) {
  check(file.is_verifiable(), "a file to download has a size and a hash");
  const RemoteFile remote{
      .name = file.name,
      .url = fmt::format("{}/{}/resolve/{}/{}", options_.settings.endpoint,
                         escape_path(name.repository), commit, escape_path(file.name)),
      .size = file.size,
      .hash = file.hash};
  download_file(client_, remote, path,
                {.retry = options_.retry,
                 .progress = options_.progress,
                 .refuse = [&](const HttpReply& reply) {
                   require(reply.status != 404, ErrorCode::not_found,
                           "'{}' lists {}, but the hub does not have it (404)", name.repository,
                           file.name);
                   refuse(reply, name);
                 }});
}

}  // namespace heed
