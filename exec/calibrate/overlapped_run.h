#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/compute_kernels.h"
#include "exec/calibrate/joint_spans.h"
#include "exec/calibrate/side_work.h"
#include "exec/communicator/communicator.h"
#include "exec/profiler/kernel_records.h"

namespace dcsim::exec {

/// What one rank saw of a run. Of copy engines' work there is one span, as `side`, which starts at
/// the end of the op that it waits for, or at 0; of their repeated work none.
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

  /// Work of a third stream, again and again.
  struct Repeated {
    const SideWork& work;
    std::size_t count = 1;
  };

  /// `count` times the kernel, and the side work, if any, from kOpsBefore on; without ops the side
  /// work alone. With `meanwhile` a third stream is let go together with the side work. All ranks
  /// call it together.
  OverlappedSpans Run(const ComputeKernel* kernel,
                      std::size_t count,
                      const SideWork* work,
                      const std::optional<Repeated>& meanwhile = std::nullopt);
  /// Both on streams of their own, let go at once: the first one's span as `side`, the second one's
  /// as the ops.
  OverlappedSpans RunBoth(const SideWork& first, const Repeated& second);

 private:
  void Align();
  void RunSide(const SideWork& work, at::cuda::CUDAEvent& ready);
  void RunOther(const Repeated& repeated, std::uint64_t first_label, at::cuda::CUDAEvent& ready);
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
