// A hub of models on a free port of this machine, which misbehaves by script.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/content_hash.h"
#include "base/files.h"
#include "base/json.h"

namespace heed::testing {

struct HubRequest {
  std::string path;                            // with its query
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  bool is_for(const std::string& file) const { return path.ends_with("/" + file); }
};

// The bytes of a reply as they are sent, header included; then the connection is closed, or held
// open in silence. A hub that drips sends what follows the header four bytes at a time, five times
// a second, until its client leaves.
struct HubAnswer {
  std::string bytes;
  bool hold = false;
  bool drips = false;
};

inline std::string http_reply(const std::string& status, const std::string& headers,
                              const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + headers + "\r\n" + body;
}
inline std::string content_length(std::size_t length) {
  return "Content-Length: " + std::to_string(length) + "\r\n";
}

// Serves one request a connection, one after the other.
class HubServer {
 public:
  // Answers a request, the number-th (from 0) for its path, in place of the hub; nothing: the hub
  // answers as it should.
  using Script = std::function<std::optional<HubAnswer>(const HubRequest& request, int number)>;

  HubServer() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 16);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HubServer() {
    stop_ = true;
    thread_.join();
    for (const int connection : held_) ::close(connection);
    ::close(listener_);
  }
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  std::string endpoint(const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + std::to_string(port_);
  }

  // Call these before the requests that they concern.
  void set_script(Script script) { script_ = std::move(script); }
  void set_file(const std::string& name, const std::string& content) { files_[name] = content; }
  void remove_file(const std::string& name) { files_.erase(name); }
  void clear_files() { files_.clear(); }
  void set_repository(const std::string& name) { repository_ = name; }
  // Every file of a directory.
  void set_files(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      set_file(entry.path().filename().string(), read_text_file(entry.path()));
    }
  }
  const std::map<std::string, std::string>& files() const { return files_; }

  std::vector<HubRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<HubRequest> requests_for(const std::string& file) const {
    std::vector<HubRequest> found = requests();
    std::erase_if(found, [&](const HubRequest& request) { return !request.is_for(file); });
    return found;
  }
  void forget_requests() {
    const std::lock_guard lock(mutex_);
    requests_.clear();
  }

  static constexpr const char* commit = "0123456789abcdef0123456789abcdef01234567";

  // The entry of a file in the listing: weights are LFS files.
  static OrderedJson sibling(const std::string& name, const std::string& content) {
    const bool is_large = name.ends_with(".safetensors");
    ContentHasher hasher(is_large ? HashKind::sha256 : HashKind::git_blob,
                         static_cast<std::int64_t>(content.size()));
    hasher.add(content);
    OrderedJson entry{{"rfilename", name}, {"size", content.size()}};
    if (is_large) {
      entry["blobId"] = std::string(40, '7');  // of the pointer
      entry["lfs"] = {{"sha256", hasher.finish().hex}, {"size", content.size()}};
    } else {
      entry["blobId"] = hasher.finish().hex;
    }
    return entry;
  }
  OrderedJson listing() const {
    OrderedJson siblings = OrderedJson::array();
    for (const auto& [name, content] : files_) siblings.push_back(sibling(name, content));
    return {{"id", repository_}, {"sha", commit}, {"siblings", std::move(siblings)}};
  }
  static HubAnswer json_answer(const OrderedJson& document) {
    const std::string text = document.dump();
    return {http_reply("200 OK", content_length(text.size()), text)};
  }

  // A file as the hub sends it, with the Range and If-Range of the request.
  static HubAnswer file_answer(const HubRequest& request, const std::string& content) {
    const std::string etag = etag_of(content);
    const std::string fields = "ETag: " + etag + "\r\nAccept-Ranges: bytes\r\n";
    const std::string range = request.header("range");
    const std::string if_range = request.header("if-range");
    if (range.empty() || (!if_range.empty() && if_range != etag)) {
      return {http_reply("200 OK", fields + content_length(content.size()), content)};
    }
    const std::size_t begin = std::stoul(range.substr(std::string("bytes=").size()));
    if (begin >= content.size()) return {http_reply("416 Range Not Satisfiable", "", "")};
    const std::string part = content.substr(begin);
    return {http_reply("206 Partial Content",
                       fields + content_length(part.size()) + "Content-Range: bytes " +
                           std::to_string(begin) + "-" + std::to_string(content.size() - 1) + "/" +
                           std::to_string(content.size()) + "\r\n",
                       part)};
  }
  static std::string etag_of(const std::string& content) {
    return "\"" + std::to_string(std::hash<std::string>{}(content)) + "\"";
  }
  // That answer, cut after so many bytes of its body.
  static HubAnswer cut(HubAnswer answer, std::size_t body_bytes) {
    answer.bytes.resize(
        std::min(answer.bytes.size(), answer.bytes.find("\r\n\r\n") + 4 + body_bytes));
    return answer;
  }

 private:
  void serve() {
    while (!stop_) {
      pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) serve(connection);
    }
  }

  void serve(int connection) {
    const HubAnswer reply = answer(read_request(connection));
    const std::size_t header = reply.drips ? reply.bytes.find("\r\n\r\n") + 4 : 0;
    std::size_t sent = 0;
    while (sent < reply.bytes.size() && !stop_) {
      std::size_t size = reply.bytes.size() - sent;
      if (reply.drips && sent < header) size = header - sent;
      if (reply.drips && sent >= header) {
        size = std::min<std::size_t>(size, 4);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
      const ssize_t count = ::send(connection, reply.bytes.data() + sent, size, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    if (reply.hold) {
      held_.push_back(connection);
    } else {
      ::close(connection);
    }
  }

  static HubRequest read_request(int connection) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    HubRequest request;
    const std::size_t path = text.find(' ') + 1;
    request.path = text.substr(path, text.find(' ', path) - path);
    for (std::size_t begin = text.find("\r\n") + 2; begin < text.size();) {
      const std::size_t end = std::min(text.find("\r\n", begin), text.size());
      const std::size_t colon = text.find(": ", begin);
      if (colon < end) {
        std::string name = text.substr(begin, colon - begin);
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        request.headers[name] = text.substr(colon + 2, end - colon - 2);
      }
      begin = end + 2;
    }
    return request;
  }

  HubAnswer answer(const HubRequest& request) {
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = static_cast<int>(std::ranges::count(requests_, request.path, &HubRequest::path));
      requests_.push_back(request);
    }
    if (script_) {
      if (auto scripted = script_(request, number)) return *scripted;
    }
    if (request.path.starts_with("/api/models/" + repository_ + "/revision/")) {
      return json_answer(listing());
    }
    const std::string resolved = "/" + repository_ + "/resolve/" + commit + "/";
    if (request.path.starts_with(resolved)) {
      const auto file = files_.find(request.path.substr(resolved.size()));
      if (file != files_.end()) return file_answer(request, file->second);
    }
    return {http_reply("404 Not Found", content_length(0), "")};
  }

  int listener_ = -1;
  int port_ = 0;
  Script script_;
  std::string repository_ = "org/small";
  std::map<std::string, std::string> files_;
  mutable std::mutex mutex_;
  std::vector<HubRequest> requests_;
  std::vector<int> held_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace heed::testing
