#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"

namespace dcsim {

/// By how much parameters begin behind multiples of 16 bytes: ZeRO-1 and 2 keep them side by side
/// in one tensor a dtype, so that one of odd size (a bias of 4 elements) shifts all behind it.
/// ZeRO-3 gathers each into memory of its own.
class ParamShifts {
 public:
  /// Nothing is shifted in stage 3. The graph must outlive this.
  ParamShifts(const Graph& graph, const ScheduleOptions& options, int ranks);

  /// Bytes by which a tensor begins behind a multiple of 16; 0 of what is no parameter.
  std::int64_t Of(ValueId value) const;

  /// The largest power of two, 16 at most, that tells where all tensors of an op begin, in bytes.
  std::int64_t AlignmentOf(OpId id) const;

 private:
  const Graph& graph_;
  std::vector<std::int64_t> begins_;  // by storage: elements in front of a parameter, else 0
};

/// How a profile's `side_by_side` has the parameters: as ZeRO-1 and 2 with all-reduces keep them,
/// one behind the other without padding.
ScheduleOptions SideBySideOptions();

/// What a profile says of ops whose parameters lie as a schedule keeps them.
class LaidOutProfile {
 public:
  /// `profile` may be null. Graph and profile must outlive this.
  LaidOutProfile(const Graph& graph,
                 const Profile* profile,
                 const ScheduleOptions& options,
                 int ranks);

  /// The entry of an op: of `side_by_side` where its parameters are shifted as they were there,
  /// else the one with parameters in memory of their own. Null where it was not measured.
  const OpProfile* Find(OpId id) const;

  /// Of an op that was measured with its parameters shifted as here, else null: then what the shift
  /// costs is to be added to its time.
  const OpProfile* FindShifted(OpId id) const;

 private:
  struct Shifts {
    ParamShifts here;
    ParamShifts measured;
  };

  const Graph& graph_;
  const Profile* profile_;
  std::optional<Shifts> shifts_;  // where some op can have been measured so
};

}  // namespace dcsim
