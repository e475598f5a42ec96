#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/ir/document.h"
#include "model/ir/dtype.h"
#include "model/ir/waiting_delays.h"
#include "model/machine/contention.h"

namespace dcsim {

/// What the models of kernels know of a GPU (model/cost/kernel_models.h): a machine only keeps it.
struct KernelRates;
/// The same of the kernels that Inductor writes (model/cost/launch_time.h).
struct TritonRates;

/// Reads the keys of a GPU's `kernels` and those of its `triton`. Faults go to the reader's.
struct KernelRatesReader {
  std::shared_ptr<const KernelRates> (*kernels)(ObjectReader& section);
  std::shared_ptr<const TritonRates> (*triton)(ObjectReader& section);
};

/// Peak rate of dense matrix products in one element type.
struct MatmulPeak {
  DType dtype = DType::kBFloat16;
  double flops_per_second = 0;
};

/// Time that the GPU spends between tasks.
struct DeviceGaps {
  std::optional<Duration> kernel;  // between neighbouring kernels of a stream
  std::optional<Duration> step;  // between kernels of a step whose ops were profiled; else `kernel`
  Duration collective;           // from the end of what a collective waits for until it has
                                 // started on the last rank, skew between ranks included
  std::optional<Duration> start;   // of `collective` and `queued`, until the kernel starts on its
                                   // own rank; else 0
  std::optional<Duration> memory;  // start to start, of kernels of memory work, beyond their bytes;
                                   // else `kernel` and the shortest kernel
  std::optional<Duration> queued;  // before a collective that follows a task of its stream at
                                   // once; else `kernel`
  WaitingDelays waiting{};         // of ops' kernels, expected where nobody measured any
  bool waiting_measured = false;   // `waiting` is of the very streams that a step runs on
  double waiting_of_ops = 1;       // how many times as long as dc-run's shortest kernels they wait
};

/// What a power limit does to a GPU's clock and its kernels. Energies of kernels go with
/// (clock / highest_mhz)^exponent, so a step that needs too many watts runs at a lower clock.
struct PowerModel {
  double limit_watts = 0;   // of the GPU, and of those that were profiled
  double idle_watts = 0;    // whatever the GPU does
  double highest_mhz = 0;   // SM clock without need to save power
  double profiled_mhz = 0;  // at which op times were measured that do not say their own
  double exponent = 0;
  std::array<double, kDeviceUses> watts{};  // of a work beyond idle, at the highest clock
  std::array<double, kDeviceUses> slows{};  // times go with (profiled clock / clock)^slows
};

/// How wrong the parts of a prediction are: standard deviations, as shares of the part's times.
struct PartErrors {
  double ops = 0;                 // profiled ones
  double roofline = 0;            // of ops that no profile covers
  std::optional<double> guessed;  // … and whose kernels no profile has shown; none: the roofline's
  double collectives = 0;         // at a measured size and number of ranks
  double sizes = 0;               // … for each power of two to the nearest measured size
  double ranks = 0;               // … to the nearest measured number of ranks
  double contention = 0;          // of what tasks lose beside others
  double host = 0;
  double host_copies = 0;
  Duration step;  // of a whole step, whatever it does
};

/// One kind of GPU: data-sheet figures, and how much of them kernels reach. The roofline of ops
/// that no profile covers. File form: dc-gpu/1 (configs/gpus).
struct GpuSpec {
  std::string name;
  Bytes memory;                     // that CUDA reports in total
  Bytes outside_allocator;          // context and modules of one process, without NCCL
  BytesPerSecond memory_bandwidth;  // data sheet
  BytesPerSecond host_bandwidth;    // of copies from and to pinned host memory, each way alone; 0:
                                    // not said
  BytesPerSecond give_back_rate;    // of segments to the driver (cudaFree), besides
                                    // HostCosts::segment; 0: not said
  int multiprocessors = 0;
  std::vector<MatmulPeak> matmul;   // data sheet, dense
  double matmul_efficiency = 0;     // share of the peak that large products reach
  double attention_efficiency = 0;  // same, fused attention forward
  double attention_backward_efficiency = 0;
  double bandwidth_efficiency = 0;     // share of the bandwidth that streaming kernels reach
  Duration shortest_kernel;            // no kernel takes less
  std::vector<Bytes> workspaces;       // that libraries allocate once (cuBLAS)
  std::vector<Bytes> bias_workspaces;  // … with the first product that adds a bias (cuBLASLt)
  std::shared_ptr<const KernelRates> kernels;  // none: the roofline prices all kernels
  std::shared_ptr<const TritonRates> triton;   // none: all bytes at `bandwidth_efficiency`
  DeviceGaps gaps;
  Contention contention;
  std::optional<PowerModel> power;  // none: clocks do not change
  std::optional<PartErrors> errors;
  std::string source;  // of these figures, for people

  double MatmulFlops(DType dtype) const;  // peak, 0 when the GPU has no such products

  /// Start to start, of kernels of memory work, beyond their bytes.
  Duration memory_pace() const {
    return gaps.memory.value_or(shortest_kernel + gaps.kernel.value_or(Duration()));
  }
  /// From the event that lets a kernel of another stream start to the kernel.
  Duration kernel_start() const { return gaps.start.value_or(Duration()); }
};

}  // namespace dcsim
