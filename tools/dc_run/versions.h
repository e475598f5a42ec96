#pragma once

#include "model/ir/document.h"

namespace dcsim {

/// What measurements are made with: this program and its commit, libtorch, CUDA's runtime, NCCL.
Json Versions();

}  // namespace dcsim
