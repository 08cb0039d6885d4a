#include "tensor/device_recording.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tensor/device.h"
#include "tensor/device_library.h"

namespace heed {
namespace {

struct Functions {
  template <class Function>
  static Function* of(const char* name) {
    return reinterpret_cast<Function*>(accelerator_function(name));
  }
  decltype(&heed_cuda_begin_recording) begin =
      of<decltype(heed_cuda_begin_recording)>("begin_recording");
  decltype(&heed_cuda_end_recording) end = of<decltype(heed_cuda_end_recording)>("end_recording");
  decltype(&heed_cuda_repeat_recording) repeat =
      of<decltype(heed_cuda_repeat_recording)>("repeat_recording");
  decltype(&heed_cuda_forget_recording) forget =
      of<decltype(heed_cuda_forget_recording)>("forget_recording");
};

const Functions& functions() {
  static const Functions all;
  return all;
}

void require_recorded(HeedCudaResult result, std::string_view what) {
  require(result == nullptr, ErrorCode::unsupported, "CUDA: {} failed: {}", what, result);
}

std::mutex turns;  // one thread records at a time
thread_local DeviceRecording* recording_of_thread = nullptr;
std::atomic<std::uint64_t> recorded_count = 0, repeated_count = 0;

}  // namespace

std::unique_ptr<DeviceRecording> DeviceRecording::begin() {
  check(recording_of_thread == nullptr, "a thread records once at a time");
  std::unique_lock turn(turns, std::try_to_lock);
  if (!turn.owns_lock()) return nullptr;
  return std::unique_ptr<DeviceRecording>(new DeviceRecording(std::move(turn)));
}

DeviceRecording* DeviceRecording::current() { return recording_of_thread; }

DeviceRecording::DeviceRecording(std::unique_lock<std::mutex> turn)
    : turn_(std::move(turn)),
      counter_(allocate_on_accelerator(sizeof(int))),
      limit_(std::numeric_limits<std::int64_t>::max()) {
  try {
    clear_bytes(counter_, sizeof(int));
    require_recorded(functions().begin(), "recording launches");
  } catch (...) {
    release_on_accelerator(counter_);
    throw;
  }
  recording_of_thread = this;
}

DeviceRecording::~DeviceRecording() {
  if (recording_of_thread == this) {
    recording_of_thread = nullptr;
    functions().end(nullptr, nullptr);
  }
  if (recorded_ != nullptr) functions().forget(recorded_);
  for (std::byte* const memory : kept_) release_on_accelerator(memory);
  release_on_accelerator(counter_);
}

void DeviceRecording::finish() {
  check(recording_of_thread == this, "a recording is ended by the thread that began it");
  recording_of_thread = nullptr;
  const HeedCudaResult result = functions().end(reinterpret_cast<int*>(counter_), &recorded_);
  turn_.unlock();
  require_recorded(result, "recording launches");
  ++recorded_count;
}

void DeviceRecording::repeat() {
  check(recorded_ != nullptr && can_repeat(), "a recording is repeated as often as it is right");
  require_recorded(functions().repeat(recorded_), "repeating launches");
  ++repetitions_;
  ++repeated_count;
}

void DeviceRecording::limit(std::int64_t repetitions) { limit_ = std::min(limit_, repetitions); }

void DeviceRecording::keep(std::byte* memory) noexcept {
  try {
    kept_.push_back(memory);
  } catch (...) {  // without memory for the list, what it would hold stays taken
  }
}

void DeviceRecording::will_clear(const void* memory, std::size_t bytes) {
  cleared_.emplace_back(static_cast<const std::byte*>(memory), bytes);
}

bool DeviceRecording::clears(const void* memory, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(memory);
  return std::ranges::any_of(cleared_, [&](std::span<const std::byte> cleared) {
    return cleared.data() < begin + bytes && begin < cleared.data() + cleared.size();
  });
}

DeviceRecordings device_recordings() {
  return {.recorded = recorded_count, .repeated = repeated_count};
}

}  // namespace heed
