#pragma once

#include <string>
#include <string_view>

#include "model/ir/graph.h"

namespace dcsim {

/// Reads a dc-graph/1 document (docs/reference/formats.md) and checks every rule of it.
///
///   text   the uncompressed JSON
///   file   its name, for messages
///
/// Throws Error that lists every fault of the file with its JSON pointer.
Graph ParseGraph(std::string_view text, const std::string& file);

/// The canonical JSON text of a graph: what the recorder writes, keys in the documented order, one
/// line. PrintGraph(ParseGraph(x)) == x for recorded files.
std::string PrintGraph(const Graph& graph);

}  // namespace dcsim
