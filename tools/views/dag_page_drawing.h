#pragma once

#include "tools/views/dag_page.h"
#include "tools/views/drawing.h"

namespace dcsim {

/// The page as a graph whose nodes have their places (layout "nop"): forward above, backward and
/// optimizer below, a lane a stream, a frame a column. Boxes of a column of layers show the mean of
/// one of them.
Drawing DrawPage(const DagPage& page);

}  // namespace dcsim
