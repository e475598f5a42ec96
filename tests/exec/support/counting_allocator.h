#pragma once

#include <cstdint>

#include <c10/core/Allocator.h>

namespace dcsim::exec {

/// Counts the bytes of the CPU tensors of each thread, while it exists: a rank is a thread. It
/// stands in for PyTorch's CPU allocator, which does the work. Tensors have to be freed by the
/// thread that made them, which ranks do.
class CountingAllocator : public c10::Allocator {
 public:
  CountingAllocator();
  ~CountingAllocator() override;

  /// Bytes that the calling thread has asked for and not given back.
  static std::int64_t live();

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* to, const void* from, std::size_t count) const override;

 private:
  c10::Allocator* own_;
};

}  // namespace dcsim::exec
