#pragma once

#include <cstdint>
#include <string>

struct CUmod_st;
struct CUfunc_st;

namespace dcsim::exec {

/// Blocks of a launch.
struct LaunchGrid {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;

  bool operator==(const LaunchGrid&) const = default;
};

/// A function of a cubin, loaded for the current GPU.
class GpuKernel {
 public:
  /// What to load, and how it is called in errors.
  struct Code {
    const std::string& name;
    const std::string& architecture;  // that it was compiled for, "sm_90"
    const std::string& cubin;
    const std::string& entry;
    std::int64_t shared;   // bytes of dynamic shared memory of every launch
    std::int64_t threads;  // of a block
  };

  /// Throws SystemError with the kernel's name where the driver does not take the cubin, as for
  /// another GPU than it was compiled for.
  explicit GpuKernel(const Code& code);
  GpuKernel(GpuKernel&& other) noexcept;
  GpuKernel(const GpuKernel&) = delete;
  GpuKernel& operator=(const GpuKernel&) = delete;
  GpuKernel& operator=(GpuKernel&&) = delete;
  /// No launch may be under way.
  ~GpuKernel();

  /// Launches on the current stream; `arguments` are addresses of one each. Throws SystemError.
  void Launch(const LaunchGrid& grid, void** arguments) const;

 private:
  std::string name_;
  unsigned shared_;
  unsigned threads_;
  CUmod_st* module_ = nullptr;
  CUfunc_st* function_ = nullptr;
};

}  // namespace dcsim::exec
