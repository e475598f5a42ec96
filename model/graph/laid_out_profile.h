#pragma once

#include <optional>

#include "model/graph/param_shifts.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"

namespace dcsim {

/// How a profile's `side_by_side` has the parameters: as ZeRO-1 and 2 with all-reduces keep them,
/// one behind the other without padding.
ScheduleOptions SideBySideOptions();

/// An op of a profile, as a schedule finds it.
struct LaidOutOp {
  const OpProfile* entry = nullptr;  // null where it was not measured
  bool shifted = false;  // measured with its parameters shifted as in the schedule; else what the
                         // shift costs is to be added to its time
};

/// What a profile says of ops whose parameters lie as a schedule keeps them.
class LaidOutProfile {
 public:
  /// `profile` may be null. Graph and profile must outlive this.
  LaidOutProfile(const Graph& graph,
                 const Profile* profile,
                 const ScheduleOptions& options,
                 int ranks);

  /// Of an op: the entry of `side_by_side` where its parameters are shifted as they were there,
  /// else the one with parameters in memory of their own.
  LaidOutOp Find(OpId id) const;

 private:
  const OpProfile* FindShifted(OpId id) const;

  struct Shifts {
    ParamShifts here;
    ParamShifts measured;
  };

  const Graph& graph_;
  const Profile* profile_;
  std::optional<Shifts> shifts_;  // where some op can have been measured so
};

}  // namespace dcsim
