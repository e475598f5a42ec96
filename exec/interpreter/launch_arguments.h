#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// Whether LaunchArguments knows the argument's type.
bool CanPass(const KernelArgument& argument);

/// Arguments of a launch as the driver takes them: addresses of memory that holds one each, in its
/// own width. Behind them Triton 3.6 has two pointers to scratch memory, null where a kernel uses
/// none.
class LaunchArguments {
 public:
  /// passed   positions in the signature of the arguments that are passed
  LaunchArguments(const std::vector<KernelArgument>& signature,
                  const std::vector<std::size_t>& passed);

  /// Number `index` of those that are passed: a number, or an address for a pointer.
  void Set(std::size_t index, std::int64_t number);
  void Set(std::size_t index, double number);
  void Set(std::size_t index, const void* address);

  /// For cuLaunchKernel; valid until the next Set.
  void** data();
  /// Bytes of a number as the kernel reads them; for tests.
  std::span<const std::byte> bytes(std::size_t index) const;
  /// How many there are, scratch pointers included.
  std::size_t size() const { return cells_.size(); }

 private:
  static constexpr std::size_t kWidest = 8;
  struct Cell {
    alignas(kWidest) std::array<std::byte, kWidest> bytes{};
    std::uint8_t width = kWidest;
    bool is_float = false;
  };

  std::vector<Cell> cells_;
  std::vector<void*> addresses_;
};

}  // namespace dcsim::exec
