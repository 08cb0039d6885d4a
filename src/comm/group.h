// The processes that work on one run, as each of them sees the others. All members of a group call
// the same functions in the same order; a call returns when the members that it depends on have
// made it too.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heed {

// Where each member's part of an array begins, and, behind the last, where the array ends: size + 1
// ascending numbers from 0.
using PartStarts = std::span<const std::size_t>;

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

  // Ends all processes of the group at once, this one with `status`.
  [[noreturn]] virtual void abort(int status) = 0;
};

void all_gather(Group& group, std::span<float> values, PartStarts starts);
void barrier(Group& group);

// What any, or all together, have; the same for every member. Sums are added in the order of ranks.
bool any(Group& group, bool value);
double sum(Group& group, double value);

// What each member has, by rank.
std::vector<double> gather(Group& group, double value);
std::vector<std::string> gather(Group& group, const std::string& text);

// What the first member has.
double of_first(Group& group, double value);
std::string of_first(Group& group, const std::string& text);

// The group of a process that works alone.
std::unique_ptr<Group> single_group();

}  // namespace heed
