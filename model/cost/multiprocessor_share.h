#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/cost/kernel_traits.h"
#include "model/ir/profile.h"
#include "model/machine/contention.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// How an op shares the GPU's multiprocessors with what runs on other streams
/// (docs/design/costs/contention.md).
struct MultiprocessorShare {
  Duration room;                          // longest wait of a kernel of another stream for room
  Duration last_wave;                     // the end of its time, in which some of them are free
  std::int32_t last_free = 0;             // so many
  std::optional<Rate> beside_collective;  // speed beside a collective; none: the class's
  Duration own_tiles;   // of tiles that those thread blocks which find no multiprocessor beside a
                        // collective were given beforehand; 0: none is missing
  Duration own_latest;  // from the kernel's start until others of its thread blocks end, whose
                        // places they take at the latest
};

/// Elements of the output that one thread block of a matrix product computes, by its kernel's name:
/// 128 x 256 of `nvjet_sm90_tst_128x256_64x4_2x1_v_bz_NTN`, of `..._128x256x64_2x1x1_0_...`. None
/// where the name does not tell.
std::optional<std::int64_t> TileElements(std::string_view kernel);

/// What an op launches, as far as a profile tells.
struct LaunchedKernels {
  const Kernel* longest = nullptr;  // null: not measured
  std::int64_t count = 1;
  double share = 1;  // of the longest one in the time of all
};

LaunchedKernels FindKernels(const Profile& profile, const OpProfile& op);

/// The share of an op of class `use` that takes `device` alone.
///
/// A product's last wave of tiles leaves multiprocessors free unless it is full. What is not known
/// of a kernel is 0.
///
/// A product or attention kernel keeps its multiprocessors: for the whole time when its thread
/// blocks run in one wave or are persistent, for a block's life when there are more of them. A
/// product beside a collective needs as many waves as its tiles need on the multiprocessors left; a
/// streaming kernel loses a share and a fixed time, at most half as much as it takes. A
/// persistent product's thread blocks are given their first two tiles beforehand, the others one by
/// one; those of experts (aten::_grouped_mm: CUTLASS) all of them. An op of several kernels has the
/// waves of its longest one.
MultiprocessorShare ShareOf(const KernelTraits& of,
                            DeviceUse use,
                            Duration device,
                            const LaunchedKernels& kernels,
                            const GpuSpec& gpu);

}  // namespace dcsim
