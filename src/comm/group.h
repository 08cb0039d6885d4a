// The processes that work on one run, as each of them sees the others. All members of a group call
// the same functions in the same order; a call returns when the members that it depends on have
// made it too.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace heed {

// Where each member's part of an array begins, and, after the last, where the array ends: size + 1
// ascending numbers from 0.
using PartStarts = std::span<const std::size_t>;

// How the terms of a sum travel: rounded to nearest, where they are shorter. Sums are of f32.
enum class Wire { f32, bf16 };

// An exchange that goes on while its members compute. Its bytes stay where they are, untouched,
// until it is done.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual bool is_done() const = 0;
};

// What a member sends to one while it receives what another, or the same, sends to it. Between two
// members, what is received is what was sent first; it has the length that it was sent with.
struct Shift {
  std::span<const std::byte> sent;
  int to;  // rank
  std::span<std::byte> received;
  int from;  // rank
};

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;        // of this process, from 0
  virtual int size() const = 0;        // processes
  virtual int neighbours() const = 0;  // of them on this machine, this one included
  bool is_alone() const { return size() == 1; }
  bool is_first() const { return rank() == 0; }

  // Fills each part of `bytes` with what the member that it belongs to has there.
  virtual void all_gather(std::span<std::byte> bytes, PartStarts starts) = 0;

  // Adds this member's part of `values` up over all members, in the order of their ranks: a sum is
  // the same to the bit in every run. The other parts are left as they are.
  virtual void reduce_scatter(std::span<float> values, PartStarts starts) = 0;

  // Fills `bytes` with what the member `root` has there.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // The same without waiting: all_gather, and reduce_scatter with terms as `wire` says; this
  // member's own term is never rounded. Members begin the exchanges of each of the two kinds in one
  // order; between those of different kinds there is none. They go on in every call of a function
  // of the group; progress() does nothing else.
  virtual std::shared_ptr<const Exchange> begin_all_gather(std::span<std::byte> bytes,
                                                           PartStarts starts) = 0;
  virtual std::shared_ptr<const Exchange> begin_reduce_scatter(std::span<float> values,
                                                               PartStarts starts, Wire wire) = 0;
  // Of the members that the shift names alone, and in no order with the other kinds.
  virtual std::shared_ptr<const Exchange> begin_shift(const Shift& shift) = 0;
  virtual void progress() = 0;
  virtual void wait(const Exchange& exchange) = 0;

  // What this process has spent in functions of the group, waiting for others included.
  virtual double seconds() const = 0;

  // Ends all processes of the group at once, this one with `status`.
  [[noreturn]] virtual void abort(int status) = 0;
};

void all_gather(Group& group, std::span<float> values, PartStarts starts);
void barrier(Group& group);

// What any, or all together, have; the same for every member. Sums are added in the order of ranks.
bool any(Group& group, bool value);
double sum(Group& group, double value);
// Element by element.
std::vector<double> sum(Group& group, const std::vector<double>& values);
// In place: reduce_scatter of equal parts, and all_gather of their sums.
void all_reduce(Group& group, std::span<float> values);

// What each member has, by rank.
std::vector<double> gather(Group& group, double value);
std::vector<std::string> gather(Group& group, const std::string& text);

// What the first member has.
double of_first(Group& group, double value);
std::string of_first(Group& group, const std::string& text);

// Of groups that have nothing to wait for.
std::shared_ptr<const Exchange> finished_exchange();

// The group of a process that works alone.
std::unique_ptr<Group> single_group();

// Errors of a group: one member says what is wrong, and all of them end.

// Thrown by every member at the same place. One of them speaks.
enum class Speaker { this_member, another };
class AgreedError : public Error {
 public:
  AgreedError(ErrorCode code, const std::string& message, Speaker speaker)
      : Error(code, message), speaks_(speaker == Speaker::this_member) {}

  bool speaks() const noexcept { return speaks_; }

 private:
  bool speaks_;
};

// Throws AgreedError on every member if any of them failed; the first that did speaks, and throws
// its failure itself if that is no Error. So does a process that is alone, whatever it is.
void agree(Group& group, const std::exception_ptr& failure);

// Does `work`, which exchanges nothing with other members, and agrees on how that went.
template <class Work>
void agreed(Group& group, Work&& work) {
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  agree(group, failure);
}

// "process 2 of 4: ", the rank being from 0, for messages; empty where there is one.
std::string process_prefix(const Group& group, int rank);

}  // namespace heed
