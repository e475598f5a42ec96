#pragma once

#include <string_view>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// A graph from its text (ParseGraphText) that can be run: operators get the schemas of this
/// libtorch, and the arguments that the text leaves out their defaults there.
Graph ParseRealGraph(std::string_view text);

/// A graph of one op: its inputs are the values 0, 1, …, its outputs those that follow. Values have
/// no shapes, since the interpreter needs none.
Graph OneOp(const std::string& schema,
            const std::vector<Argument>& arguments,
            std::size_t inputs,
            const std::vector<ValueId>& outputs);

}  // namespace dcsim::exec
