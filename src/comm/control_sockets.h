// TCP connections of a few bytes between the processes of a group: from each to the first.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace heed {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;

// Who is at the other end.
struct Introduction {
  int rank = 0;
  std::string name;  // "node7, pid 4711"
};

// Of this process.
std::string process_name();

// Where the first process waits for the others.
struct MeetingPoint {
  int port = 0;
  std::string token;                   // a secret of the group
  std::vector<std::string> addresses;  // of its machine, in numbers

  std::string text() const;
  static MeetingPoint parse(const std::string& text);
};

// Listens at a port that the system chooses, at all addresses; an empty descriptor where it cannot.
Descriptor listen_anywhere(MeetingPoint& point);

// The next process that knows the token; nothing where none comes before the deadline.
struct Caller {
  Descriptor connection;
  Introduction who;
};
std::optional<Caller> accept_caller(const Descriptor& listener, const MeetingPoint& point,
                                    Deadline deadline);

// An empty descriptor where no address leads to the meeting point.
Descriptor call(const MeetingPoint& point, const Introduction& self, Deadline deadline);

// Sends a byte without waiting. False where the other end is gone.
bool send_byte(const Descriptor& connection, char byte);

// What has arrived; nothing where the other end is gone.
std::optional<std::string> receive_bytes(const Descriptor& connection);

}  // namespace heed
