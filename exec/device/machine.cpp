#include "exec/device/machine.h"

#include <array>
#include <ctime>
#include <fstream>

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <torch/csrc/api/include/torch/version.h>

#include "exec/device/cuda_call.h"

namespace dcsim::exec {
namespace {

/// The value of the first line "key : value" of a file, or "unknown".
std::string ValueInFile(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos && colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

cudaDeviceProp Properties() {
  int device = 0;
  DCSIM_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  DCSIM_CUDA(cudaGetDeviceProperties(&properties, device));
  return properties;
}

}  // namespace

int GpuCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string GpuName() {
  return Properties().name;
}

Json MachineReport() {
  const cudaDeviceProp properties = Properties();
  return {{"gpu", properties.name},
          {"gpus", GpuCount()},
          {"gpu_memory_bytes", properties.totalGlobalMem},
          {"multiprocessors", properties.multiProcessorCount},
          {"cache_bytes", properties.l2CacheSize},
          {"cpu", ValueInFile("/proc/cpuinfo", "model name")},
          {"driver", FirstLine("/sys/module/nvidia/version")}};
}

Json VersionReport() {
  int runtime = 0;
  DCSIM_CUDA(cudaRuntimeGetVersion(&runtime));
  int nccl = 0;
  CheckNccl(ncclGetVersion(&nccl), "ncclGetVersion", nullptr);
  const auto text = [](int major, int minor, int patch) {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  };
  return {{"torch", TORCH_VERSION},
          {"cuda", std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10)},
          {"nccl", text(nccl / 10000, nccl / 100 % 100, nccl % 100)}};
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
  return text.data();
}

}  // namespace dcsim::exec
