#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/device/side_streams.h"
#include "model/ir/schedule.h"

namespace dcsim::exec {

/// The streams of a schedule on one device, and the events that its tasks wait for. On the CPU
/// every call is done when it returns, so nothing here does anything.
class Streams {
 public:
  /// On a GPU: the default stream computes, the others are high-priority pool streams, as in
  /// DeepCompile.
  Streams(c10::Device device, SideStreams which);

  /// Makes a stream current for kernels, copies and allocations while it lives.
  class Use {
   public:
    Use(const Streams& streams, StreamRole role);

   private:
    std::optional<c10::cuda::CUDAStreamGuard> guard_;
  };

  /// Events by slot, made for `count` slots.
  void MakeEvents(std::size_t count);
  void Record(std::size_t event, StreamRole role);
  void Wait(std::size_t event, StreamRole role);
  void HostWait(std::size_t event);
  void HostWaitForAll();

  /// Gives the allocator's cached memory back to the driver; waits for the device.
  void ReleaseCache();

  /// The block of `tensor` may be reused only once the stream has passed this point.
  void RecordStream(const at::Tensor& tensor, StreamRole role) const;

  bool on_gpu() const { return device_.is_cuda(); }
  c10::Device device() const { return device_; }
  c10::cuda::CUDAStream stream(StreamRole role) const {
    return streams_[static_cast<std::size_t>(role)];
  }

 private:
  c10::Device device_;
  std::vector<c10::cuda::CUDAStream> streams_;  // by role; empty on the CPU
  std::vector<at::cuda::CUDAEvent> events_;
};

}  // namespace dcsim::exec
