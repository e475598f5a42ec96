#pragma once

#include "tools/views/dag_page.h"

namespace dcsim {

/// Of each column the longest boxes of the compute stream, so many that a half of the page is not
/// wider than a sheet; the others of a kind become one. Sorts boxes and arrows.
DagPage MergeSmallBoxes(DagPage page);

}  // namespace dcsim
