#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// The candidate with the fewest edits (insert, delete, replace, swap of neighbours) from `name`,
/// when that is at most a third of the name's length, at least 2; otherwise nothing. Ties go to
/// the earlier candidate.
std::optional<std::string_view> FindNearestName(std::string_view name,
                                                std::span<const std::string_view> candidates);

/// ", did you mean 'x'?" for the nearest candidate, or an empty string.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

/// The names joined as "a, b or c", for messages that list what was expected.
std::string JoinAlternatives(std::span<const std::string_view> names);

/// Joins with a separator.
std::string Join(std::span<const std::string> parts, std::string_view separator);

/// A whole number in base 10 that fills all of `text` and fits 64 bits, or nothing.
std::optional<std::int64_t> FindInteger(std::string_view text);

/// A finite decimal number that fills all of `text` ("1.5", "500e6"), or nothing. Independent of
/// the locale.
std::optional<double> FindNumber(std::string_view text);

/// FNV-1a, 64 bits (Fowler, Noll, Vo; offset basis 14695981039346656037, prime 1099511628211).
std::uint64_t HashBytes(std::string_view bytes);

/// 16 lower-case hexadecimal digits.
std::string HexDigits(std::uint64_t value);

/// A value with three significant digits and the unit that fits, for people: "1.234 s",
/// "56.7 ms", "8.9 us", "120 ns".
std::string FormatDuration(Duration duration);

/// "1.25 GiB", "340 MiB", "12.0 KiB", "17 B".
std::string FormatBytes(Bytes bytes);

/// An exact quantity in the largest binary unit that divides it: "80 GiB", "1536 MiB", "17 B".
/// FindBytes gives the same value back.
std::string PrintBytes(Bytes bytes);

}  // namespace dcsim
