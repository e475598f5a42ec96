#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/compute_kernels.h"
#include "exec/calibrate/joint_spans.h"
#include "exec/communicator/communicator.h"
#include "exec/profiler/kernel_records.h"
#include "model/cost/contention.h"

namespace dcsim::exec {

/// Work of another stream than the one that computes.
struct SideWork {
  std::string name;
  DeviceUse use = DeviceUse::kCollective;
  std::function<void()> run;  // on the current stream
  Bytes payload{};            // of a collective or of a copy
  std::int64_t kernels = 1;   // that it launches
};

/// What one rank saw of a run. Of a gather by copy engines the start is that of the wait's end.
struct OverlappedSpans {
  std::vector<Span> ops;  // of the compute stream
  std::optional<Span> side;
  KernelRecord last_kernel;  // of the last op
};

/// Runs ops on the current stream while another stream works. The host issues everything while long
/// products run in front, so that no launch is late; a collective in front makes ranks start
/// together.
class OverlappedRun {
 public:
  static constexpr std::size_t kOpsBefore = 3;  // the side work may start

  explicit OverlappedRun(Communicator& communicator);

  /// `count` times the kernel, and the side work, if any, from kOpsBefore on; without ops the side
  /// work alone. All ranks call it together.
  OverlappedSpans Run(const ComputeKernel* kernel, std::size_t count, const SideWork* work);
  /// Both on streams of their own, let go at once, the second `count` times: the first one's span
  /// as `side`, the second one's as the ops.
  OverlappedSpans RunBoth(const SideWork& first, const SideWork& second, std::size_t count = 1);

 private:
  void Align();
  void RunSide(const SideWork& work, at::cuda::CUDAEvent& ready);
  OverlappedSpans Read(std::size_t count, const SideWork* work);

  Communicator& communicator_;
  c10::cuda::CUDAStream side_stream_;
  c10::cuda::CUDAStream other_stream_;
  at::cuda::CUDAEvent before_{cudaEventDefault};
  at::cuda::CUDAEvent after_{cudaEventDefault};
  at::Tensor signal_;
  at::Tensor plug_;
  at::Tensor plug_out_;
  KernelRecorder recorder_;
};

}  // namespace dcsim::exec
