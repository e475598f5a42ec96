#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"

namespace dcsim {

/// The keys "backend" and "kernels" of a compiled form; a graph of operators has neither.
void ReadCompiled(ObjectReader& document, Graph& graph);

/// The keys "kernel", "reads" and "writes" of an op that is a launch, whose arguments and outputs
/// are read already: fills its inputs. Ids are in range of `graph` afterwards, or faults.
void ReadLaunch(ObjectReader& object, const Graph& graph, Op& op);

/// The same keys, as they are written.
Json PrintBackend(const CompiledFor& compiled);
Json PrintKernel(const TritonKernel& kernel);
void PrintLaunch(const KernelLaunch& launch, Json& op);

}  // namespace dcsim
