// Streams, events, and graphs captured from streams. Work is done before a call returns, so that
// streams and events have nothing to wait for. With HEED_EMULATED_LAZY=1 it is done when a call
// waits for any: what the host then reads or overwrites too early shows.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "internal.h"

using Work = std::vector<std::function<void()>>;

struct CUgraph_st {
  Work work;  // in the order of its capture
};
struct CUgraphExec_st {
  Work work;
};

namespace heed::emulation {

struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread = std::this_thread::get_id();
  bool is_valid = true;
  Work work = {};
};

}  // namespace heed::emulation

using heed::emulation::Capture;

struct CUstream_st {
  int device;
  unsigned flags;
  std::shared_ptr<Capture> capture;  // that records this stream, or null
};

struct CUevent_st {
  unsigned flags;
  bool was_recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;  // of the stream that recorded it last
};

namespace heed::emulation {
namespace {

// All that lives. Work runs without the first lock, and waiting work with the second.
struct Streams {
  std::mutex mutex;
  std::recursive_mutex running;
  std::deque<std::function<void()>> waiting;  // of all streams, in order
  std::set<cudaStream_t> streams;
  std::vector<std::shared_ptr<Capture>> captures;
};

Streams& all() {
  static auto& streams = *new Streams;
  return streams;
}

bool is_lazy() {
  const char* text = std::getenv("HEED_EMULATED_LAZY");
  return text != nullptr && *text == '1';
}

bool is_stream(cudaStream_t stream) { return stream == nullptr || all().streams.contains(stream); }

// Whether a capture includes work on the legacy stream, which would have to wait for it.
bool captures_legacy_stream() {
  return std::any_of(all().captures.begin(), all().captures.end(), [](const auto& capture) {
    return (capture->origin->flags & cudaStreamNonBlocking) == 0;
  });
}

}  // namespace

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  {
    const std::lock_guard lock(all().mutex);
    if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
    if (stream == nullptr) {
      if (captures_legacy_stream()) return failed(cudaErrorStreamCaptureImplicit);
    } else if (stream->device != current_device()) {
      return failed(cudaErrorInvalidResourceHandle);
    } else if (stream->capture != nullptr) {
      if (!stream->capture->is_valid) return failed(cudaErrorStreamCaptureInvalidated);
      stream->capture->work.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  if (is_lazy()) {
    const std::lock_guard lock(all().mutex);
    all().waiting.push_back(std::move(work));
  } else {
    work();
  }
  return cudaSuccess;
}

void finish_work() {
  const std::lock_guard running(all().running);
  for (;;) {
    std::function<void()> work;
    {
      const std::lock_guard lock(all().mutex);
      if (all().waiting.empty()) return;
      work = std::move(all().waiting.front());
      all().waiting.pop_front();
    }
    work();
  }
}

cudaError_t outside_capture() {
  const std::lock_guard lock(all().mutex);
  cudaError_t error = cudaSuccess;
  for (const auto& capture : all().captures) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeThreadLocal &&
        capture->thread != std::this_thread::get_id()) {
      continue;
    }
    capture->is_valid = false;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

}  // namespace heed::emulation

using namespace heed::emulation;

// --- Streams ---

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return failed(cudaErrorInvalidValue);
  const std::lock_guard lock(all().mutex);
  *stream = new CUstream_st{current_device(), flags, nullptr};
  all().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(all().mutex);
  if (all().streams.erase(stream) == 0) return failed(cudaErrorInvalidResourceHandle);
  std::erase_if(all().captures, [=](const auto& capture) { return capture->origin == stream; });
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaDeviceSynchronize();
  finish_work();
  const std::lock_guard lock(all().mutex);
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr) return cudaSuccess;
  stream->capture->is_valid = false;
  return failed(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaDeviceSynchronize() {
  finish_work();
  return failed(outside_capture());
}

// A stream that waits for an event of a captured one takes part in the capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(all().mutex);
  if (!is_stream(stream) || event == nullptr) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture == nullptr) return cudaSuccess;
  if (stream == nullptr) return failed(cudaErrorStreamCaptureImplicit);
  stream->capture = event->capture;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  return enqueue(stream, [=] { function(user_data); });
}

// --- Events ---

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return failed(cudaErrorInvalidValue);
  *event = new CUevent_st{flags, false, {}, nullptr};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return failed(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(all().mutex);
  if (event == nullptr || !is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  event->capture = stream == nullptr ? nullptr : stream->capture;
  event->was_recorded = event->capture == nullptr;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return failed(cudaErrorInvalidResourceHandle);
  finish_work();
  return event->capture == nullptr ? cudaSuccess : failed(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  for (const CUevent_st* event : {begin, end}) {
    if (event == nullptr || !event->was_recorded || (event->flags & cudaEventDisableTiming) != 0) {
      return failed(cudaErrorInvalidResourceHandle);
    }
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}

// --- Graphs ---

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(all().mutex);
  if (stream == nullptr) return failed(cudaErrorStreamCaptureUnsupported);
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return failed(cudaErrorInvalidValue);
  stream->capture = all().captures.emplace_back(new Capture{stream, mode});
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(all().mutex);
  if (graph != nullptr) *graph = nullptr;
  if (stream == nullptr || !is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return failed(cudaErrorInvalidValue);
  if (capture->origin != stream) return failed(cudaErrorStreamCaptureUnmatched);
  for (cudaStream_t captured : all().streams) {
    if (captured->capture == capture) captured->capture = nullptr;
  }
  std::erase(all().captures, capture);
  if (!capture->is_valid) return failed(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(capture->work)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(all().mutex);
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  *status = cudaStreamCaptureStatusNone;
  if (stream != nullptr && stream->capture != nullptr) {
    *status = stream->capture->is_valid ? cudaStreamCaptureStatusActive
                                        : cudaStreamCaptureStatusInvalidated;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (executable == nullptr || graph == nullptr) return failed(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable == nullptr) return failed(cudaErrorInvalidValue);
  return enqueue(stream, [work = executable->work] {
    for (const auto& step : work) step();
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return executable == nullptr ? failed(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return failed(cudaErrorInvalidValue);
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return failed(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}
