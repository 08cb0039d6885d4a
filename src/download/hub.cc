#include "download/hub.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "download/http_client.h"

namespace heed {
namespace {

constexpr std::size_t max_repository = 96;  // bytes, as on huggingface.co
constexpr std::size_t max_revision = 64;    // a directory's name has at most 255

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_word(std::string_view text) {
  const auto at_end = [](char c) { return c == '-' || c == '.'; };
  return !text.empty() && std::ranges::all_of(text, is_word_character) && !at_end(text.front()) &&
         !at_end(text.back()) && text.find("--") == std::string_view::npos &&
         text.find("..") == std::string_view::npos;
}

bool is_repository(std::string_view text) {
  if (text.size() > max_repository) return false;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_word(text);
  return is_word(text.substr(0, slash)) && is_word(text.substr(slash + 1));
}

bool is_revision(std::string_view text) {
  return text.size() <= max_revision && is_safe_repository_path(text) &&
         std::ranges::all_of(text, [](char c) { return is_word_character(c) || c == '/'; });
}

constexpr std::int64_t max_file = std::int64_t{1} << 44;  // sums of many do not overflow

ContentHash read_hash(const Json& value, HashKind kind, const std::string& label) {
  const std::string hex = json_string(value, {label});
  require(is_hash(kind, hex), ErrorCode::corrupt_data,
          "{} must be a {} hash in hexadecimal digits, not {}", label, hash_kind_name(kind),
          shown_json(value));
  return {.kind = kind, .hex = hex};
}

const Json& hub_field(const Json& object, const char* key, const std::string& source) {
  const Json* const value = find_json_member(object, key);
  require(value != nullptr, ErrorCode::corrupt_data, "{}: '{}' is missing", source, key);
  return *value;
}

HubFile read_hub_file(const Json& sibling, const std::string& source) {
  HubFile file;
  file.name = json_string(hub_field(sibling, "rfilename", source), {source + ": 'rfilename'"});
  require(is_safe_repository_path(file.name), ErrorCode::corrupt_data,
          "{}: the file name {} is refused: it leaves the repository or has control characters",
          source, shown_json(file.name));
  const std::string label = source + ": " + file.name + ": ";
  if (const Json* const size = find_json_member(sibling, "size")) {
    file.size = json_integer(*size, {label + "'size'"}, 0, max_file);
  }
  if (const Json* const lfs = find_json_member(sibling, "lfs")) {
    file.hash =
        read_hash(hub_field(*lfs, "sha256", label + "'lfs'"), HashKind::sha256, label + "'sha256'");
    const std::int64_t size = json_integer(hub_field(*lfs, "size", label + "'lfs'"),
                                           {label + "'size' of 'lfs'"}, 0, max_file);
    require(file.size < 0 || file.size == size, ErrorCode::corrupt_data,
            "{}'size' is {}, but that of 'lfs' is {}", label, file.size, size);
    file.size = size;
  } else if (const Json* const blob = find_json_member(sibling, "blobId")) {
    file.hash = read_hash(*blob, HashKind::git_blob, label + "'blobId'");
  }
  return file;
}

constexpr std::size_t max_listing = std::size_t{4} << 20;  // bytes: some 15,000 files

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
    require(bytes.size() <= max_listing - text.size(), ErrorCode::corrupt_data,
            "the reply to {} has more than {} bytes", url_, max_listing);
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

std::string HubName::directory_name() const {
  std::string name = repository;
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    name.replace(slash, 1, "--");
  }
  if (!weights.empty()) name += ":" + weights;
  return revision == HubName().revision ? name : name + "@" + escape_url_segment(revision);
}

namespace {

// Letters, digits and '_', in capitals.
std::optional<std::string> read_weights_name(std::string_view text) {
  constexpr std::size_t longest = 32;
  if (text.empty() || text.size() > longest) return std::nullopt;
  std::string name;
  for (const char c : text) {
    const bool is_small = c >= 'a' && c <= 'z';
    const bool is_other = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_small && !is_other) return std::nullopt;
    name.push_back(is_small ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return name;
}

}  // namespace

std::optional<HubName> find_hub_name(std::string_view text) {
  HubName name;
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos) {
    if (!is_revision(text.substr(at + 1))) return std::nullopt;
    name.revision = text.substr(at + 1);
  }
  std::string_view repository = text.substr(0, at);
  if (const std::size_t colon = repository.find(':'); colon != std::string_view::npos) {
    const auto weights = read_weights_name(repository.substr(colon + 1));
    if (!weights) return std::nullopt;
    name.weights = *weights;
    repository = repository.substr(0, colon);
  }
  if (!is_repository(repository)) return std::nullopt;
  name.repository = repository;
  return name;
}

HubName parse_hub_name(std::string_view text) {
  auto name = find_hub_name(text);
  require(name.has_value(), ErrorCode::invalid_argument,
          "{} is not the name of a model on a hub; expected NAME, ORG/NAME or ORG/NAME@REVISION, "
          "such as gpt2, and :Q4_K_M after the name for a GGUF file of these weights",
          shown_json(std::string(text)));
  return *std::move(name);
}

bool is_safe_repository_path(std::string_view path) {
  const auto is_unsafe = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\';
  };
  if (std::ranges::any_of(path, is_unsafe)) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

const HubFile* HubRepository::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &HubFile::name);
  return found == files.end() ? nullptr : &*found;
}

HubRepository parse_hub_repository(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  HubRepository repository;
  const Json& sha = hub_field(document, "sha", source);
  repository.commit = json_string(sha, {source + ": 'sha'"});
  // A commit and a blob have names of one form.
  require(is_hash(HashKind::git_blob, repository.commit), ErrorCode::corrupt_data,
          "{}: 'sha' must be a commit, 40 hexadecimal digits, not {}", source, shown_json(sha));
  const Json& siblings = hub_field(document, "siblings", source);
  require(siblings.is_array(), ErrorCode::corrupt_data, "{}: 'siblings' must be an array, not {}",
          source, shown_json(siblings));
  std::set<std::string_view> names;
  repository.files.reserve(siblings.size());  // the names stay where they are
  for (const Json& sibling : siblings) {
    repository.files.push_back(read_hub_file(sibling, source));
    const std::string& name = repository.files.back().name;
    require(names.insert(name).second, ErrorCode::corrupt_data, "{}: the file {} is listed twice",
            source, shown_json(name));
  }
  return repository;
}

}  // namespace heed
