#pragma once

#include <string>
#include <string_view>

#include "model/ir/graph.h"
#include "model/ir/profile.h"

namespace dcsim {

/// Reads a dc-profile/1 document (docs/reference/formats.md) for a graph: the hash must be the
/// graph's, ops and outputs must exist, blocks be freed after their allocation. Throws Error with
/// every fault.
Profile ParseProfile(std::string_view text, const Graph& graph, const std::string& file);

/// The canonical JSON text; ParseProfile gives the profile back.
std::string PrintProfile(const Profile& profile);

}  // namespace dcsim
