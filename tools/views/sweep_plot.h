#pragma once

#include <string>

#include "tools/views/sweep_text.h"

namespace dcsim {

/// An SVG picture of a sweep: the step time above, reserved memory below, both over the values of
/// the first key, evenly spaced, with one colour for each combination of the others. Bars are the
/// bounds of the step time, grey dashes what the GPU leaves to the step. A step that does not fit
/// is a cross: at the top of the step times, and at the memory that it would take.
std::string PrintSweepPlot(const SweepReport& report);

}  // namespace dcsim
