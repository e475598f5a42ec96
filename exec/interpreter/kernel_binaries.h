#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// A Triton kernel compiled for one kind of GPU, with one of its configurations.
struct KernelBinary {
  KernelConfig config;               // block sizes, warps
  std::string entry;                 // name of the function in the cubin
  std::int64_t shared = 0;           // bytes of dynamic shared memory
  std::vector<std::size_t> passed;   // positions in the signature of what a launch passes
  std::vector<std::size_t> aligned;  // of these the pointers that must be multiples of 16 bytes
  std::string cubin;
};

/// What `python -m dcrecord kernels` made for a workload. File form: dc-kernels/1.
struct KernelBinaries {
  std::string file;
  std::string architecture;  // "sm_90"
  // By hash of the kernel's source: one for each configuration, in the recorded order.
  std::map<std::string, std::vector<KernelBinary>> by_hash;
};

/// Reads a dc-kernels/1 document. Throws Error with every fault.
KernelBinaries ParseKernelBinaries(std::string_view text, const std::string& file);

/// Why these are not the binaries of the graph's kernels, in a sentence that names the first kernel
/// that is missing, or was compiled otherwise, or cannot be launched; "" where all can.
std::string FindUnlaunchable(const Graph& graph, const KernelBinaries& binaries);

}  // namespace dcsim::exec
