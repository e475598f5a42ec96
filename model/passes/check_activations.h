#pragma once

#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// What is wrong with the activations that a plan offloads, a sentence each: only what a forward
/// graph saves for one backward graph may leave, behind its last use there, and has to come back
/// before its first use in the backward graph, once each.
void CheckActivations(const Plan& plan, const Graph& graph, std::vector<std::string>& faults);

/// Whether graph `from` makes and saves a value that graph `to` uses, no other graph does, and
/// nothing else holds its storage: then its memory goes back when it leaves.
bool MayLeave(const Graph& graph, ValueId value, std::size_t from, std::size_t to);

}  // namespace dcsim
