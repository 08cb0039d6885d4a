// What a thread launches on the accelerator, recorded once and repeated as one launch (a graph of
// CUDA's). Every repetition reads and writes the same memory; kernels to which positions matter
// read its number on the device, and move by so many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace heed {

class DeviceRecording {
 public:
  // Records what this thread launches until finish(), instead of doing it. Copies from the
  // processor are done at once, and not again. Copies to it throw Error{unsupported}, as do copies
  // from it to memory that repetitions would clear, and waiting. Null where another thread records.
  static std::unique_ptr<DeviceRecording> begin();
  // The recording of this thread, or null.
  static DeviceRecording* current();

  DeviceRecording(const DeviceRecording&) = delete;
  DeviceRecording& operator=(const DeviceRecording&) = delete;
  // Forgets all, also while it is recorded.
  ~DeviceRecording();

  // Ends the recording; by the thread that began it. Throws Error{unsupported}.
  void finish();

  // Does what was recorded, after all that has been launched.
  void repeat();
  bool can_repeat() const { return repetitions_ < limit_; }

  // While it is recorded: the number of the repetition, from 0 on, at an address of the device; and
  // the repetitions for which a launch is right.
  const int* repetition() const { return reinterpret_cast<const int*>(counter_); }
  void limit(std::int64_t repetitions);

  // Memory that was given back while it was recorded belongs to it: repetitions use it.
  void keep(std::byte* memory) noexcept;
  // What repetitions clear.
  void will_clear(const void* memory, std::size_t bytes);
  bool clears(const void* memory, std::size_t bytes) const;

 private:
  explicit DeviceRecording(std::unique_lock<std::mutex> turn);

  std::unique_lock<std::mutex> turn_;  // while it is recorded
  std::byte* counter_;
  void* recorded_ = nullptr;  // once it is
  std::vector<std::byte*> kept_;
  std::vector<std::span<const std::byte>> cleared_;
  std::int64_t repetitions_ = 0;
  std::int64_t limit_;
};

// Of this process.
struct DeviceRecordings {
  std::uint64_t recorded = 0;
  std::uint64_t repeated = 0;
};
DeviceRecordings device_recordings();

}  // namespace heed
