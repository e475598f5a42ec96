#pragma once

#include <cstddef>

#include "model/ir/schedule.h"

namespace dcsim {

/// The end of a step with which folding begins: the first task behind the last wait of the host
/// behind which a stream goes on; 0 without such a wait.
std::size_t FindTail(const Schedule& schedule);

}  // namespace dcsim
