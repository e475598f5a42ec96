#include "model/ir/profile.h"

#include <algorithm>

namespace dcsim {

const OpProfile* FindEntry(const std::vector<OpProfile>& entries, OpId id) {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), id,
                       [](const OpProfile& entry, OpId op) { return entry.op < op; });
  return found != entries.end() && found->op == id ? &*found : nullptr;
}

const OpProfile* Profile::FindOp(OpId id) const {
  return FindEntry(ops, id);
}

}  // namespace dcsim
