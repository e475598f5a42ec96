#include "tests/exec/support/counting_allocator.h"

#include <limits>
#include <memory>

#include <c10/core/CPUAllocator.h>

namespace dcsim::exec {
namespace {

constexpr std::uint8_t kHighest = std::numeric_limits<std::uint8_t>::max();

thread_local std::int64_t live_bytes = 0;

/// A block of the true allocator.
struct CountedBlock {
  c10::DataPtr data;
  std::int64_t bytes;
};

void FreeCounted(void* context) {
  const std::unique_ptr<CountedBlock> block(static_cast<CountedBlock*>(context));
  live_bytes -= block->bytes;
}

}  // namespace

CountingAllocator::CountingAllocator() : own_(c10::GetCPUAllocator()) {
  c10::SetCPUAllocator(this, kHighest);
}

CountingAllocator::~CountingAllocator() {
  c10::SetCPUAllocator(own_, kHighest);
}

std::int64_t CountingAllocator::live() {
  return live_bytes;
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  c10::DataPtr data = own_->allocate(bytes);
  void* address = data.get();
  const auto count = static_cast<std::int64_t>(bytes);
  live_bytes += count;
  return {address, new CountedBlock{std::move(data), count}, &FreeCounted, c10::DeviceType::CPU};
}

void CountingAllocator::copy_data(void* to, const void* from, std::size_t count) const {
  own_->copy_data(to, from, count);
}

}  // namespace dcsim::exec
