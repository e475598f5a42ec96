#include "exec/interpreter/launch_arguments.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr std::size_t kScratchPointers = 2;

struct NumberType {
  std::string_view name;
  std::uint8_t width;
  bool is_float;
};

/// Triton's types of numbers (triton/backends/nvidia/driver.py, ty_to_cpp). It passes floats of two
/// bytes in forms of its own; Inductor has none.
constexpr std::array<NumberType, 14> kNumberTypes = {{{"i1", 1, false},
                                                      {"i8", 1, false},
                                                      {"i16", 2, false},
                                                      {"i32", 4, false},
                                                      {"i64", 8, false},
                                                      {"u1", 1, false},
                                                      {"u8", 1, false},
                                                      {"u16", 2, false},
                                                      {"u32", 4, false},
                                                      {"u64", 8, false},
                                                      {"fp32", 4, true},
                                                      {"f32", 4, true},
                                                      {"fp64", 8, true},
                                                      {"f64", 8, true}}};

const NumberType* FindNumberType(std::string_view name) {
  const auto* found = std::ranges::find(kNumberTypes, name, &NumberType::name);
  return found == kNumberTypes.end() ? nullptr : found;
}

}  // namespace

bool CanPass(const KernelArgument& argument) {
  return argument.is_pointer() || FindNumberType(argument.type) != nullptr;
}

LaunchArguments::LaunchArguments(const std::vector<KernelArgument>& signature,
                                 const std::vector<std::size_t>& passed) {
  for (const std::size_t position : passed) {
    Cell& cell = cells_.emplace_back();
    if (const NumberType* type = FindNumberType(signature[position].type)) {
      cell.width = type->width;
      cell.is_float = type->is_float;
    }
  }
  cells_.resize(cells_.size() + kScratchPointers);
  addresses_.resize(cells_.size());
}

// Numbers lie with their lowest byte first on every machine that has such GPUs.
void LaunchArguments::Set(std::size_t index, std::int64_t number) {
  Cell& cell = cells_[index];
  if (cell.is_float) {
    Set(index, static_cast<double>(number));
    return;
  }
  std::memcpy(cell.bytes.data(), &number, cell.width);
}

void LaunchArguments::Set(std::size_t index, double number) {
  Cell& cell = cells_[index];
  DCSIM_CHECK(cell.is_float);
  const auto narrow = static_cast<float>(number);
  if (cell.width == sizeof(narrow)) {
    std::memcpy(cell.bytes.data(), &narrow, sizeof(narrow));
  } else {
    std::memcpy(cell.bytes.data(), &number, sizeof(number));
  }
}

void LaunchArguments::Set(std::size_t index, const void* address) {
  std::memcpy(cells_[index].bytes.data(), &address, sizeof(address));
}

void** LaunchArguments::data() {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    addresses_[i] = cells_[i].bytes.data();
  }
  return addresses_.data();
}

std::span<const std::byte> LaunchArguments::bytes(std::size_t index) const {
  return std::span(cells_[index].bytes).first(cells_[index].width);
}

}  // namespace dcsim::exec
