#include "model/ir/profile.h"

#include <algorithm>

namespace dcsim {

const OpProfile* Profile::FindOp(OpId id) const {
  const auto found = std::lower_bound(
      ops.begin(), ops.end(), id, [](const OpProfile& entry, OpId op) { return entry.op < op; });
  return found != ops.end() && found->op == id ? &*found : nullptr;
}

}  // namespace dcsim
