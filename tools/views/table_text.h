#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// One line of a text answer: label on the left, value flush right, note behind it.
std::string TableLine(const std::string& label, const std::string& value, const std::string& note);

/// The text at the right or left end of a column that is `width` characters wide, or as wide as the
/// text.
std::string FlushRight(const std::string& text, std::size_t width);
std::string FlushLeft(std::string text, std::size_t width);

/// Rows of as many cells each, in columns two blanks apart: the first `left` of them flush left,
/// the others flush right.
std::string AlignColumns(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// The same with one column flush left and a note behind each row.
std::string AlignColumns(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::string>& notes);

/// "61.8 of 138 GiB", "900 MiB of 1.25 GiB".
std::string PartOf(Bytes part, Bytes whole);

/// 53620.4 -> "53,620".
std::string Thousands(double value);

/// "1 call", "2,000 calls".
std::string Counted(std::int64_t count, std::string_view one, std::string_view several);

/// 0.447 -> "44.7 %".
std::string Percent(double share);

/// 0.0213 -> "+2.1 %", of a difference.
std::string SignedPercent(double share);

/// A field of CSV (RFC 4180): in quotes, its own quotes twice, where it holds what separates
/// fields.
std::string CsvField(const std::string& text);

}  // namespace dcsim
