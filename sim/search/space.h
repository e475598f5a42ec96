#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/ir/document.h"
#include "sim/search/candidate.h"

namespace dcsim {

/// Parameters by name, in which '*' stands for any run of characters.
struct ParamPattern {
  std::string text;
  std::string where;  // it stands, for a message when it matches nothing
};

/// What a search may change about the gathers of ZeRO-3, parameter by parameter.
struct GatherSpace {
  std::int64_t most_ahead = 64;  // parameters that a gather may be issued before its own, by use
  std::int64_t most_in_launch = 16;             // parameters of one launch
  Bytes largest_launch = Bytes(1'000'000'000);  // DeepCompile's MAX_FUSE_SIZE
  std::optional<Bytes> most_in_flight;  // gathered before its first use, persistent ones left out
  bool choose_persistent = true;        // which parameters stay gathered
  std::vector<ParamPattern> always_gathered;  // parameters that stay in any case
  std::vector<ParamPattern> never_kept;       // that may not stay otherwise
};

/// The schedules among which a search chooses. File form: dc-space/1 (docs/design/search.md).
struct SearchSpace {
  std::optional<Bytes> memory_limit;     // of reserved bytes
  std::vector<ScheduleOptions> options;  // combinations that agree with each other
  GatherSpace gathers;
  bool names_accumulation = false;  // the document lists gradient_accumulation_steps
  bool names_clipping = false;      // … gradient_clipping
  bool names_training = false;      // … a key of TrainingOptions
};

/// What is trained must be the same in all schedules that a search compares: accumulation steps,
/// clipping and the optimizer come from the baseline where the space does not name them. Throws
/// Error when both name them and differ.
void TakeTraining(const ScheduleOptions& baseline, SearchSpace& space);

/// Reads a dc-space/1 document. Every combination of the listed options is kept that no rule of
/// plans forbids; what a stage does not look at takes its first value. Throws Error with every
/// fault: unknown keys with the nearest known one, values out of range, no combination left and
/// the rule that forbids one.
SearchSpace ReadSearchSpace(const Json& document, const Locator& locate);

/// What a search without a space file chooses from; the same as configs/spaces/default.yaml.
Json DefaultSearchSpace();

/// The gathers of a space for one workload: its patterns matched, its bounds as predicates.
class GatherRules {
 public:
  /// Throws Error when a pattern matches no parameter.
  GatherRules(const GatherSpace& space, const Graph& graph);

  const GatherSpace& space() const { return space_; }
  bool may_keep(ParamId id) const { return may_keep_[id.index()]; }
  bool must_keep(ParamId id) const { return must_keep_[id.index()]; }

  /// Whether the space holds these gathers of one graph.
  bool Admit(const std::vector<GatherSite>& sites,
             const GraphGathers& gathers,
             const std::vector<std::uint8_t>& persistent) const;

 private:
  bool AdmitsLaunches(const std::vector<GatherSite>& sites, const GraphGathers& gathers) const;
  bool AdmitsFlight(const std::vector<GatherSite>& sites,
                    const GraphGathers& gathers,
                    const std::vector<std::uint8_t>& persistent) const;

  GatherSpace space_;
  std::vector<bool> may_keep_;
  std::vector<bool> must_keep_;
};

}  // namespace dcsim
