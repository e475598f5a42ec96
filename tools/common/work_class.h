#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "tools/common/kineto_trace.h"

namespace dcsim {

/// What kernels are for, as far as both a kernel's name and a task of a schedule tell it.
enum class WorkClass : std::uint8_t {
  kProducts,     // matrix products and convolutions
  kAttention,    // fused
  kTriton,       // kernels that Inductor wrote
  kOther,        // elementwise work, reductions, norms
  kCollectives,  // NCCL's kernels, and copies from and to peers
  kOptimizer,    // fused and foreach optimizers
  kCopies,       // copies, casts, concatenations and fills, by a kernel or by a copy engine
};
inline constexpr std::size_t kWorkClasses = 7;

/// "products", for programs.
std::span<const std::string_view> WorkClassNames();
/// "matrix products", for people.
std::string_view WorkClassLabel(WorkClass work_class);

/// The class by the name that the profiler shows, in this order: a peer-to-peer copy, a collective,
/// a Triton kernel, attention, a product, a norm of many tensors, an optimizer, a copy.
WorkClass ClassOfEvent(TracedKind kind, std::string_view name);

/// The class of a task with work on the device. A collective of one rank is a copy, as in a trace.
WorkClass ClassOfTask(const Schedule& schedule, const Graph& graph, TaskId id);

/// What tells kernels of a class from each other, so that a task is found again: a Triton kernel's
/// name without the number that Inductor ends it with; attention's direction; the kind of a
/// collective; all of an optimizer. Other kernels have no name that a task knows: theirs is the
/// kernel's.
std::string GroupOfEvent(WorkClass work_class, std::string_view name);
/// The same of a task; of other tasks, what they do ("gradient-norm, widen", "aten::embedding").
std::string GroupOfTask(const Schedule& schedule, const Graph& graph, TaskId id);

/// Whether groups of this class have the same name in a trace as in a schedule.
bool GroupsHaveNames(WorkClass work_class);

}  // namespace dcsim
