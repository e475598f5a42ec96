#pragma once

#include <string>

namespace dcsim {

/// One line of a text answer: label on the left, value flush right, note behind it.
std::string TableLine(const std::string& label, const std::string& value, const std::string& note);

/// 53620.4 -> "53,620".
std::string Thousands(double value);

/// 0.447 -> "44.7 %".
std::string Percent(double share);

}  // namespace dcsim
