#pragma once

#include "model/base/units.h"
#include "model/ir/graph.h"
#include "model/ir/profile.h"

namespace dcsim {

/// What an elementwise op cost the host that took a profile: the median over the ops with kernels
/// of what they took, each over what its kind takes (LaunchesOf). Zero where no op has a kernel.
///
/// Hosts differ by up to three times, and all that a host does differs alike: a view takes 0.09 to
/// 0.12 of an elementwise op in eight of ten of 81 profiles, whose elementwise ops take 5 to 16 us.
Duration ProfiledLaunch(const Graph& graph, const Profile& profile);

}  // namespace dcsim
