#pragma once

#include <string>

#include "tools/views/search_text.h"

namespace dcsim {

/// An SVG picture of a search: reserved memory to the right, step time upwards; the front as a line
/// of points with the best filled, each baseline that completes as a square, the limit as a dashed
/// line.
std::string PrintSearchPlot(const SearchReport& report);

}  // namespace dcsim
