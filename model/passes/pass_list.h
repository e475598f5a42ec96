#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/ir/plan.h"

namespace dcsim {

/// The passes that make a spec's plan, in order: those it names, or its policy's own. The first is
/// the stage's pass; plain-1 has none below stage 3, deepspeed-eager has no passes.
std::vector<std::string> PassesOf(const PlanSpec& spec);

/// Whether one of them is called so.
bool RunsPass(const PlanSpec& spec, std::string_view pass);

/// What is wrong with the passes that a spec names, or with keys of passes that it does not name,
/// by the passes' contracts (DeepSpeed's passes/contract.py: each requires what an earlier pass
/// provides, and some pairs conflict): one sentence with the names of both passes, or nothing.
std::string FindPassFault(const PlanSpec& spec);

}  // namespace dcsim
