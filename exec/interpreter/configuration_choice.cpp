#include "exec/interpreter/configuration_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/from_blob.h>

#include "exec/device/cuda_call.h"
#include "exec/device/driver_memory.h"
#include "exec/device/event_time.h"
#include "exec/interpreter/argument_values.h"

namespace dcsim::exec {
namespace {

constexpr int kWarmUps = 2;
constexpr int kRounds = 8;
constexpr std::int64_t kApart = 256;  // bytes to whose multiples PyTorch's allocator aligns
constexpr std::int64_t kReserve = std::int64_t{256} << 20;  // bytes left to the driver

/// Bytes from a value's first element to behind its last.
std::int64_t SpanOf(const Value& value) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    last += (value.shape[i] - 1) * value.strides[i];
  }
  const std::int64_t elements = value.numel() == 0 ? 0 : last + 1;
  return RoundUp(elements * ElementBytes(value.dtype), kApart);
}

std::vector<ValueId> TensorsOf(const Op& op) {
  std::vector<ValueId> tensors;
  for (const Argument& argument : op.arguments) {
    if (const auto* id = std::get_if<ValueId>(&argument);
        id != nullptr && std::ranges::find(tensors, *id) == tensors.end()) {
      tensors.push_back(*id);
    }
  }
  return tensors;
}

class ConfigurationTimer {
 public:
  ConfigurationTimer(const Graph& graph, c10::Device device)
      : graph_(graph),
        frame_(graph.values.size()),
        device_(device),
        cache_(DriverFloats(at::cuda::getCurrentDeviceProperties()->l2CacheSize /
                                static_cast<std::int64_t>(sizeof(float)),
                            device)) {}

  /// Index of the configuration whose least time is the least, the first of equals.
  std::size_t FindFastest(const Op& op, KernelProgram& program) {
    const std::int64_t bytes = SpanOf(op);
    if (!HasMemory(bytes)) {
      return 0;
    }
    const at::Tensor memory = TakeTensors(op, bytes);
    std::vector<std::optional<Duration>> least(program.configurations());
    for (int round = 0; round < kWarmUps + kRounds; ++round) {
      for (std::size_t i = 0; i < least.size(); ++i) {
        program.Use(i);
        const Duration time = TimeOnce(op, program);
        if (round >= kWarmUps) {
          least[i] = std::min(time, least[i].value_or(time));
        }
      }
    }
    for (const ValueId id : TensorsOf(op)) {
      frame_[id.index()].reset();
    }
    return static_cast<std::size_t>(std::ranges::min_element(least) - least.begin());
  }

 private:
  std::int64_t SpanOf(const Op& op) const {
    std::int64_t bytes = kApart;
    for (const ValueId id : TensorsOf(op)) {
      bytes += exec::SpanOf(graph_.value(id));
    }
    return bytes;
  }

  static bool HasMemory(std::int64_t bytes) {
    std::size_t free = 0;
    std::size_t total = 0;
    DCSIM_CUDA(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free) > bytes + kReserve;
  }

  /// Puts the tensors of a launch into the frame, one behind the other in the memory returned.
  at::Tensor TakeTensors(const Op& op, std::int64_t bytes) {
    at::Tensor memory = DriverFloats(bytes / static_cast<std::int64_t>(sizeof(float)), device_);
    memory.zero_();
    auto* next = static_cast<char*>(memory.data_ptr());
    for (const ValueId id : TensorsOf(op)) {
      const Value& value = graph_.value(id);
      const auto options = at::TensorOptions(ToScalarType(value.dtype)).device(device_);
      frame_[id.index()] = at::from_blob(next, value.shape, value.strides, options);
      next += exec::SpanOf(value);
    }
    return memory;
  }

  Duration TimeOnce(const Op& op, KernelProgram& program) {
    at::cuda::CUDAEvent begin(cudaEventDefault);
    at::cuda::CUDAEvent end(cudaEventDefault);
    cache_.zero_();
    begin.record();
    program.Run(op.arguments, frame_);
    end.record();
    end.synchronize();
    return TimeBetween(begin, end);
  }

  const Graph& graph_;
  Frame frame_;
  c10::Device device_;
  at::Tensor cache_;  // as large as the cache of level 2
};

bool AddsAtomically(const TritonKernel& kernel) {
  return kernel.source.find("tl.atomic_") != std::string::npos;
}

}  // namespace

void UseFastestConfigurations(const Graph& graph,
                              c10::Device device,
                              const std::vector<std::unique_ptr<KernelProgram>>& kernels) {
  std::optional<ConfigurationTimer> timer;
  std::vector<char> is_done(kernels.size());
  for (const Op& op : graph.ops) {
    if (!op.launch || std::exchange(is_done[op.launch->kernel], 1) != 0) {
      continue;
    }
    KernelProgram& program = *kernels[op.launch->kernel];
    if (program.configurations() == 1 || AddsAtomically(graph.kernels[op.launch->kernel])) {
      continue;
    }
    if (!timer) {
      timer.emplace(graph, device);
    }
    program.Use(timer->FindFastest(op, program));
  }
}

}  // namespace dcsim::exec
