#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/units.h"

namespace dcsim {

/// Quantities as people write them in YAML: a number, one space or none, a unit ("80 GiB",
/// "450 GB/s", "4.9 us", "500e6 elements", "989 TFLOP/s"). Decimal (kB, MB, GB, TB) and binary
/// (KiB, MiB, GiB, TiB) units are both accepted and never mixed up. Each function gives nothing
/// when the text is no such quantity, is negative, or does not fit 63 bits; values are rounded to
/// the nearest whole unit.
std::optional<Bytes> FindBytes(std::string_view text);
std::optional<Duration> FindDuration(std::string_view text);
std::optional<BytesPerSecond> FindBytesPerSecond(std::string_view text);
std::optional<std::int64_t> FindElements(std::string_view text);

/// Floating-point operations per second ("989 TFLOP/s"). The only unit kept as a double: it is
/// never added up.
std::optional<double> FindFlopsPerSecond(std::string_view text);

}  // namespace dcsim
