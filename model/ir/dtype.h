#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dcsim {

/// Element types that recorded graphs use, named as PyTorch names them.
enum class DType : std::uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4M3,
  kFloat8E5M2,
  kComplex64,
  kComplex128,
};

/// Names in enumerator order: "bool", "uint8", …, "bfloat16".
std::span<const std::string_view> DTypeNames();

std::string_view DTypeName(DType dtype);
std::optional<DType> FindDType(std::string_view name);

/// Bytes of one element.
std::int64_t ElementBytes(DType dtype);

bool IsFloating(DType dtype);

}  // namespace dcsim
