#include "exec/device/streams.h"

#include <c10/cuda/CUDACachingAllocator.h>

namespace dcsim::exec {

Streams::Streams(c10::Device device, SideStreams which) : device_(device) {
  if (!on_gpu()) {
    return;
  }
  streams_.push_back(c10::cuda::getDefaultCUDAStream(device.index()));
  const auto sides = ChooseSideStreams(device, which, kStreamCount - 1);
  streams_.insert(streams_.end(), sides.begin(), sides.end());
}

Streams::Use::Use(const Streams& streams, StreamRole role) {
  if (streams.on_gpu()) {
    guard_.emplace(streams.stream(role));
  }
}

void Streams::MakeEvents(std::size_t count) {
  events_.clear();
  for (std::size_t i = 0; on_gpu() && i < count; ++i) {
    events_.emplace_back(cudaEventDisableTiming);
  }
}

void Streams::Record(std::size_t event, StreamRole role) {
  if (on_gpu()) {
    events_[event].record(stream(role));
  }
}

void Streams::Wait(std::size_t event, StreamRole role) {
  if (on_gpu()) {
    events_[event].block(stream(role));
  }
}

void Streams::HostWait(std::size_t event) {
  if (on_gpu()) {
    events_[event].synchronize();
  }
}

void Streams::HostWaitForAll() {
  for (const auto& each : streams_) {
    each.synchronize();
  }
}

void Streams::ReleaseCache() {
  HostWaitForAll();
  if (on_gpu()) {
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
}

void Streams::RecordStream(const at::Tensor& tensor, StreamRole role) const {
  if (on_gpu()) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream(role));
  }
}

}  // namespace dcsim::exec
