#include "exec/calibrate/memory_benchmark.h"

#include <functional>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>

#include "exec/profiler/kernel_records.h"
#include "model/base/median.h"

namespace dcsim::exec {
namespace {

constexpr std::int64_t kElements = 250'000'000;  // 500 MB in bfloat16

/// A kernel to time, and the bytes that it reads and writes.
struct PatternCase {
  MemoryPattern pattern;
  std::int64_t bytes_per_element;
  std::function<void()> run;
};

/// Median kernel time of a call, over repeats after a warm-up.
std::int64_t MedianNs(KernelRecorder& recorder, const std::function<void()>& run) {
  constexpr int kRepeats = 7;
  std::vector<std::int64_t> times;
  for (int i = 0; i < kRepeats + 2; ++i) {
    run();
    c10::cuda::device_synchronize();
    std::int64_t busy = 0;
    for (const KernelRecord& record : recorder.Take()) {
      busy += static_cast<std::int64_t>(record.end_ns - record.start_ns);
    }
    if (i >= 2) {
      times.push_back(busy);
    }
  }
  return Median(std::move(times));
}

}  // namespace

/// On values as in training: AdamW takes a fifth longer on zeros, infinities and NaNs.
std::vector<MemorySample> BenchmarkMemory() {
  const c10::InferenceMode inference;
  const auto narrow = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const auto wide = at::TensorOptions().dtype(at::kFloat).device(at::kCUDA);
  at::Tensor a = at::randn({kElements}, narrow);
  const at::Tensor b = at::randn({kElements}, narrow);
  at::Tensor master = at::randn({kElements}, wide);
  at::Tensor gradient = at::randn({kElements}, wide);
  const at::Tensor first = at::randn({kElements}, wide);
  const at::Tensor second = at::rand({kElements}, wide);
  const at::Tensor step = at::ones({}, wide);  // step 0 would divide by 0
  const auto adamw = [&](std::int64_t elements) {
    const auto part = [elements](const at::Tensor& tensor) {
      return tensor.narrow(0, 0, elements);
    };
    at::_fused_adamw_({part(master)}, {part(gradient)}, {part(first)}, {part(second)}, {}, {step},
                      1e-4, 0.9, 0.95, 0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
  };
  const std::vector<PatternCase> cases = {
      {MemoryPattern::kCopy, 4, [&] { a.copy_(b); }},
      {MemoryPattern::kScale, 4, [&] { a.div_(2); }},
      {MemoryPattern::kClip, 8, [&] { gradient.mul_(step); }},
      {MemoryPattern::kAdd, 6, [&] { a.add_(b); }},
      {MemoryPattern::kWiden, 6, [&] { a.to(at::kFloat); }},
      {MemoryPattern::kNarrow, 6, [&] { a.copy_(master); }},
      {MemoryPattern::kFill, 2, [&] { a.zero_(); }},
      {MemoryPattern::kNorm, 2,
       [&] { at::linalg_vector_norm(a, 2, std::nullopt, false, at::kFloat); }},
      {MemoryPattern::kAdamW, 28, [&] { adamw(kElements); }},
      {MemoryPattern::kAdamWUneven, 28, [&] { adamw(kElements - 1); }},
      {MemoryPattern::kPasses, 12, [&] { first.lerp_(gradient, 0.1); }},
  };
  KernelRecorder recorder;
  std::vector<MemorySample> samples;
  for (const PatternCase& each : cases) {
    const auto ns = static_cast<double>(MedianNs(recorder, each.run));
    const double bytes = static_cast<double>(each.bytes_per_element) * kElements;
    samples.push_back({each.pattern, BytesPerSecond(static_cast<std::int64_t>(bytes / ns * 1e9))});
  }
  return samples;
}

}  // namespace dcsim::exec
