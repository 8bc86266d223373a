// The CUDA implementation of launch_timer.hpp, which measures the time that work takes on the
// device.
//
// A small kernel blocks the stream while launches are enqueued, so that the events before and after
// them measure the GPU alone and not how fast the host launches. The blocking kernel ends after a
// fixed time, since the host would otherwise wait for ever if the launch queue became full.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/launch_timer.hpp"

namespace twill::gpu::cuda {

namespace {

using clock = std::chrono::steady_clock;

/// A sample must take at least this long, since shorter ones would be distorted by the resolution
/// of events and by the pause before a CUDA graph's first kernel.
constexpr double least_sample_s = 2e-3;
/// Work that takes at least this long is launched without a CUDA graph, since the cost of its
/// launches is negligible.
constexpr double graph_below_s = 200e-6;
/// CUDA's queue of launches takes about a thousand before the host has to wait.
constexpr std::int64_t most_enqueued_calls = 256;
constexpr double longest_hold_s = 0.05;

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// A kernel that runs for `ns` nanoseconds and writes the time at which it ended.
__global__ void hold_stream(unsigned long long ns, unsigned long long* ended) {
  const unsigned long long begun = nanoseconds();
  unsigned long long now = begun;
  while (now - begun < ns)
    now = nanoseconds();
  *ended = now;
}

void demand(cudaError_t code, const char* action) {
  if (code != cudaSuccess)
    throw device_lost_error(std::string(action) + ": " + cudaGetErrorString(code));
}

class event {
public:
  event() { demand(cudaEventCreate(&event_), "making an event"); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

/// Measures how long the device works on the launches that a function enqueues.
class stopwatch {
public:
  explicit stopwatch(device& dev)
      : dev_(dev), stream_(stream_of(dev.where())), ended_(allocated(dev)) {}

  /// Calls enqueue(), which launches work, and returns the time in seconds that the work takes on
  /// the device. `enqueue_s` is the time that the host takes to enqueue the launches.
  template <class F>
  double seconds(double enqueue_s, const F& enqueue) {
    const double hold_s = std::min(1.5 * enqueue_s + 50e-6, longest_hold_s);
    hold_stream<<<1, 1, 0, stream_>>>(static_cast<unsigned long long>(hold_s * 1e9),
                                      static_cast<unsigned long long*>(ended_.data()));
    demand(cudaEventRecord(begin_.get(), stream_), "recording an event");
    enqueue();
    demand(cudaEventRecord(end_.get(), stream_), "recording an event");
    dev_.fence();
    float ms = 0;
    demand(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "reading an event");
    return 1e-3 * static_cast<double>(ms);
  }

private:
  static buffer allocated(device& dev) {
    auto memory = dev.allocate(sizeof(unsigned long long), "launch_timer");
    if (!memory.ok()) throw device_lost_error(memory.detail());
    return std::move(memory.value());
  }

  device& dev_;
  cudaStream_t stream_;
  buffer ended_;
  event begin_, end_;
};

/// A captured graph of launches of an op. ok() is false where the launches could not be captured.
class captured_calls {
public:
  captured_calls(cudaStream_t stream, std::int64_t calls, const std::function<void()>& f) {
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess) {
      bool called = true;
      try {
        for (std::int64_t i = 0; i < calls; ++i)
          f();
      } catch (const std::exception&) { // such as a wait, which no capture allows
        called = false;
      }
      cudaGraph_t graph = nullptr;
      const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
      std::size_t nodes = 0;
      if (called && ended == cudaSuccess &&
          cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess && nodes > 0 &&
          cudaGraphInstantiate(&exec_, graph, 0) != cudaSuccess)
        exec_ = nullptr;
      if (graph != nullptr) cudaGraphDestroy(graph);
    }
    cudaGetLastError(); // clears the error: the op is measured without a graph
  }
  captured_calls(const captured_calls&) = delete;
  captured_calls& operator=(const captured_calls&) = delete;
  ~captured_calls() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  }

  bool ok() const { return exec_ != nullptr; }
  void replay(cudaStream_t stream) const {
    demand(cudaGraphLaunch(exec_, stream), "replaying launches");
  }

private:
  cudaGraphExec_t exec_ = nullptr;
};

double since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// Takes samples of the `calls` calls that `enqueue` enqueues. A first sample is discarded.
template <class F>
launch_times sampled(stopwatch& watch, const timing_plan& plan, timed_by how, std::int64_t calls,
                     const F& enqueue) {
  const auto first = clock::now();
  enqueue();
  const double enqueue_s = since(first);
  launch_times times;
  times.how = how;
  const auto start = clock::now();
  while (times.seconds.size() < 3 ||
         (static_cast<std::int32_t>(times.seconds.size()) < plan.samples &&
          since(start) < 4 * plan.seconds))
    times.seconds.push_back(watch.seconds(enqueue_s, enqueue) / static_cast<double>(calls));
  std::sort(times.seconds.begin(), times.seconds.end());
  return times;
}

} // namespace

launch_times timed_launches(device& dev, const timing_plan& plan, const std::function<void()>& f) {
  const cudaStream_t stream = stream_of(dev.where());
  f(); // loads the kernels and takes scratch memory
  dev.fence();
  stopwatch watch(dev);
  const double once_s = std::max(watch.seconds(50e-6, f), 1e-6);
  const auto wanted =
      std::max(std::int64_t{1}, static_cast<std::int64_t>(std::ceil(least_sample_s / once_s)));
  if (plan.graphs && once_s < graph_below_s) {
    const std::int64_t turns = (wanted + plan.turn - 1) / plan.turn;
    const std::int64_t calls = turns * plan.turn;
    if (const captured_calls graph(stream, calls, f); graph.ok())
      return sampled(watch, plan, timed_by::graph, calls, [&] { graph.replay(stream); });
  }
  const std::int64_t calls = std::min(wanted, most_enqueued_calls);
  return sampled(watch, plan, timed_by::events, calls, [&] {
    for (std::int64_t i = 0; i < calls; ++i)
      f();
  });
}

std::int64_t l2_bytes(const device&) {
  int id = 0, bytes = 0;
  demand(cudaGetDevice(&id), "asking for the GPU's number");
  demand(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, id), "asking for the GPU's cache");
  return bytes;
}

} // namespace twill::gpu::cuda
