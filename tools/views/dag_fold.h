#pragma once

#include "tools/views/dag_model.h"

namespace dcsim {

/// Replaces the middle of every run of alike layers, four or more in a row, by one node.
DagModel FoldAlikeLayers(DagModel model);

}  // namespace dcsim
