#include "model/ir/dtype.h"

#include <algorithm>
#include <array>

namespace dcsim {
namespace {

struct Row {
  std::string_view name;
  std::int64_t bytes;
  bool floating;
};

constexpr std::array<Row, 15> kRows = {{
    {"bool", 1, false},
    {"uint8", 1, false},
    {"int8", 1, false},
    {"int16", 2, false},
    {"int32", 4, false},
    {"int64", 8, false},
    {"uint64", 8, false},
    {"float16", 2, true},
    {"bfloat16", 2, true},
    {"float32", 4, true},
    {"float64", 8, true},
    {"float8_e4m3fn", 1, true},
    {"float8_e5m2", 1, true},
    {"complex64", 8, false},
    {"complex128", 16, false},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kRows.size()> names;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    names[i] = kRows[i].name;
  }
  return names;
}();

}  // namespace

std::span<const std::string_view> DTypeNames() {
  return kNames;
}

std::string_view DTypeName(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> FindDType(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  return static_cast<DType>(found - kNames.begin());
}

std::int64_t ElementBytes(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].bytes;
}

bool IsFloating(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].floating;
}

}  // namespace dcsim
