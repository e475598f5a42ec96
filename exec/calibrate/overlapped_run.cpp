#include "exec/calibrate/overlapped_run.h"

#include <algorithm>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include "exec/device/event_time.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr std::uint64_t kSideLabel = 1'000'000;
constexpr std::uint64_t kMeanwhileLabel = 2'000'000;

void Extend(Span& span, const KernelRecord& record) {
  const auto start = static_cast<std::int64_t>(record.start_ns);
  span.start = span.end == 0 ? start : std::min(span.start, start);
  span.end = std::max(span.end, static_cast<std::int64_t>(record.end_ns));
}

}  // namespace

OverlappedRun::OverlappedRun(Communicator& communicator)
    : communicator_(communicator),
      side_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true)),
      other_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true)) {
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  signal_ = at::zeros({64}, options);
  constexpr std::int64_t kPlug = 8192;
  plug_ = at::zeros({kPlug, kPlug}, options);
  plug_out_ = at::empty_like(plug_);
}

void OverlappedRun::Align() {
  communicator_.AllReduce(signal_);
  constexpr int kPlugs = 2;
  for (int i = 0; i < kPlugs; ++i) {
    at::mm_out(plug_out_, plug_, plug_);
  }
}

void OverlappedRun::RunSide(const SideWork& work, at::cuda::CUDAEvent& ready) {
  const c10::cuda::CUDAStreamGuard guard(side_stream_);
  const KernelRecorder::Label label(kSideLabel);
  ready.block(side_stream_);
  before_.record(side_stream_);
  work.run();
  after_.record(side_stream_);
}

void OverlappedRun::RunOther(const Repeated& repeated,
                             std::uint64_t first_label,
                             at::cuda::CUDAEvent& ready) {
  const c10::cuda::CUDAStreamGuard guard(other_stream_);
  ready.block(other_stream_);
  for (std::size_t i = 0; i < repeated.count; ++i) {
    const KernelRecorder::Label label(first_label + i);
    repeated.work.run();
  }
}

OverlappedSpans OverlappedRun::Run(const ComputeKernel* kernel,
                                   std::size_t count,
                                   const SideWork* work,
                                   const std::optional<Repeated>& meanwhile) {
  Align();
  at::cuda::CUDAEvent ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == kOpsBefore && work != nullptr) {
      ready.record();
      RunSide(*work, ready);
      if (meanwhile) {
        RunOther(*meanwhile, kMeanwhileLabel, ready);
      }
    }
    const KernelRecorder::Label label(i);
    kernel->run();
  }
  if (count == 0) {
    ready.record();
    RunSide(*work, ready);
  }
  c10::cuda::device_synchronize();
  OverlappedSpans seen = Read(count, work);
  if (count > 0 && work != nullptr && work->use == DeviceUse::kCopyEngine) {
    const std::int64_t start = seen.ops[kOpsBefore - 1].end;
    seen.side = Span{start, start + seen.side->time()};
  }
  return seen;
}

OverlappedSpans OverlappedRun::RunBoth(const SideWork& first, const Repeated& second) {
  Align();
  at::cuda::CUDAEvent ready;
  ready.record();
  RunSide(first, ready);
  RunOther(second, 0, ready);
  c10::cuda::device_synchronize();
  return Read(second.count, &first);
}

OverlappedSpans OverlappedRun::Read(std::size_t count, const SideWork* work) {
  OverlappedSpans seen;
  seen.ops.resize(count);
  for (const KernelRecord& record : recorder_.Take()) {
    if (record.label < count) {
      Extend(seen.ops[record.label], record);
      seen.last_kernel = record;
    } else if (record.label == kSideLabel && work->use != DeviceUse::kCopyEngine) {
      seen.side = seen.side.value_or(Span());
      Extend(*seen.side, record);
    }
  }
  // CUPTI does not report every copy between GPUs; events around them do.
  if (work != nullptr && work->use == DeviceUse::kCopyEngine) {
    seen.side = Span{0, TimeBetween(before_, after_).ns()};
  }
  DCSIM_CHECK(work == nullptr || seen.side) << "kernel records of " << work->name << " are missing";
  return seen;
}

}  // namespace dcsim::exec
