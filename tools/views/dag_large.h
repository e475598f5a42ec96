#pragma once

#include "tools/views/dag_model.h"
#include "tools/views/drawing.h"

namespace dcsim {

/// A box around each layer, a node for each node of the model, with its device time, its tasks and
/// its time on the critical path.
Drawing DrawLargeDag(const DagModel& model);

}  // namespace dcsim
