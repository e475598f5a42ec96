#include "exec/device/gpu_kernel.h"

#include <utility>

#include <c10/cuda/CUDAStream.h>
#include <cuda.h>

#include "exec/device/cuda_call.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

// What a block may have without asking for more.
constexpr unsigned kUsualShared = 48 * 1024;

/// A function of the driver, which this program is not linked to: machines without GPUs have none.
template <typename Function>
Function* FindDriverFunction(const char* name) {
  constexpr unsigned kVersion = 12000;  // of CUDA, whose function of that name it is
  void* found = nullptr;
  auto status = cudaDriverEntryPointSymbolNotFound;
  DCSIM_CUDA(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &status));
  if (status != cudaDriverEntryPointSuccess || found == nullptr) {
    throw SystemError(std::string("the CUDA driver has no ") + name + "; expected one of CUDA 12");
  }
  return reinterpret_cast<Function*>(found);
}

struct Driver {
  decltype(::cuGetErrorString)* error_text =
      FindDriverFunction<decltype(::cuGetErrorString)>("cuGetErrorString");
  decltype(::cuModuleLoadData)* load =
      FindDriverFunction<decltype(::cuModuleLoadData)>("cuModuleLoadData");
  decltype(::cuModuleUnload)* unload =
      FindDriverFunction<decltype(::cuModuleUnload)>("cuModuleUnload");
  decltype(::cuModuleGetFunction)* find =
      FindDriverFunction<decltype(::cuModuleGetFunction)>("cuModuleGetFunction");
  decltype(::cuFuncSetAttribute)* set =
      FindDriverFunction<decltype(::cuFuncSetAttribute)>("cuFuncSetAttribute");
  decltype(::cuLaunchKernel)* launch =
      FindDriverFunction<decltype(::cuLaunchKernel)>("cuLaunchKernel");

  void Check(CUresult code, const char* call, const std::string& kernel) const {
    if (code != CUDA_SUCCESS) {
      const char* text = nullptr;
      error_text(code, &text);
      throw SystemError("kernel " + kernel + ": " + call + ": code " + std::to_string(code) + " (" +
                        (text == nullptr ? "unknown" : text) + ")");
    }
  }
};

const Driver& TheDriver() {
  static const Driver driver;
  return driver;
}

}  // namespace

GpuKernel::GpuKernel(const Code& code)
    : name_(code.name),
      shared_(static_cast<unsigned>(code.shared)),
      threads_(static_cast<unsigned>(code.threads)) {
  DCSIM_CUDA(cudaFree(nullptr));  // makes the current device's context current for the driver
  const Driver& driver = TheDriver();
  const CUresult loaded = driver.load(&module_, code.cubin.data());
  if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU || loaded == CUDA_ERROR_INVALID_IMAGE) {
    throw SystemError("kernel " + name_ + " was compiled for " + code.architecture +
                      ", which this GPU does not run");
  }
  driver.Check(loaded, "cuModuleLoadData", name_);
  driver.Check(driver.find(&function_, module_, code.entry.c_str()), "cuModuleGetFunction", name_);
  if (shared_ > kUsualShared) {
    driver.Check(driver.set(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            static_cast<int>(shared_)),
                 "cuFuncSetAttribute", name_);
  }
}

GpuKernel::GpuKernel(GpuKernel&& other) noexcept
    : name_(std::move(other.name_)),
      shared_(other.shared_),
      threads_(other.threads_),
      module_(std::exchange(other.module_, nullptr)),
      function_(std::exchange(other.function_, nullptr)) {}

GpuKernel::~GpuKernel() {
  if (module_ != nullptr) {
    TheDriver().unload(module_);
  }
}

void GpuKernel::Launch(const LaunchGrid& grid, void** arguments) const {
  const Driver& driver = TheDriver();
  const auto count = [](std::int64_t blocks) { return static_cast<unsigned>(blocks); };
  driver.Check(
      driver.launch(function_, count(grid.x), count(grid.y), count(grid.z), threads_, 1, 1, shared_,
                    c10::cuda::getCurrentCUDAStream().stream(), arguments, nullptr),
      "cuLaunchKernel", name_);
}

}  // namespace dcsim::exec
