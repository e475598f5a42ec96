#pragma once

#include "model/ir/document.h"

namespace dcsim {

/// `kernels` of a GPU file, with all keys.
Json KernelsDocument();

}  // namespace dcsim
