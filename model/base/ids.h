#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace dcsim {

/// A dense index into one table, typed by the table it belongs to, so that an op cannot be used
/// where a storage is meant. Default-constructed ids are `None()`.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}
  static constexpr Id None() { return Id(); }

  constexpr std::size_t index() const { return index_; }
  constexpr bool is_none() const { return index_ == kNone; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index_ = kNone;
};

using ParamId = Id<struct ParamTag>;
using StorageId = Id<struct StorageTag>;
using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using GraphId = Id<struct GraphTag>;
using TaskId = Id<struct TaskTag>;
using BufferId = Id<struct BufferTag>;
using CollectiveId = Id<struct CollectiveTag>;
using StreamId = Id<struct StreamTag>;

}  // namespace dcsim
