#include "tools/common/work_class.h"

#include <algorithm>
#include <array>

#include "model/cost/kernel_traits.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, kWorkClasses> kNames = {
    "products", "attention", "triton", "other", "collectives", "optimizer", "copies"};
constexpr std::array<std::string_view, kWorkClasses> kLabels = {
    "matrix products", "attention", "Triton kernels",         "other kernels",
    "collectives",     "optimizer", "copies, casts and fills"};

// Parts of kernels' names: torch 2.11 with CUDA 13, cuDNN 9 and cuBLAS 13, and earlier ones.
constexpr auto kAttentionParts = std::to_array<std::string_view>(
    {"flash", "fmha", "sdpa", "attention", "dot_do_o", "convert_dq"});
constexpr auto kBackwardParts = std::to_array<std::string_view>(
    {"bwd", "bprop", "backward", "dot_do_o", "convert_dq", "fmha_reduce_head"});
constexpr auto kProductParts =
    std::to_array<std::string_view>({"gemm", "nvjet", "cutlass", "xmma", "splitKreduce", "gemv",
                                     "convol", "conv_", "_wgrad", "_dgrad", "_fprop"});
constexpr auto kOptimizerParts = std::to_array<std::string_view>(
    {"multi_tensor_apply", "FusedOptimizer", "Adam", "adam", "Adagrad"});
constexpr auto kCopyParts =
    std::to_array<std::string_view>({"copy_kernel", "CatArrayBatchedCopy", "FillFunctor"});

template <std::size_t N>
bool HasAny(std::string_view name, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

bool Has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

/// Operators that elementwise kernels do, and that move elements without computing.
constexpr auto kCopyOperators = std::to_array<std::string_view>(
    {"aten::_to_copy", "aten::clone", "aten::copy", "aten::copy_", "aten::fill", "aten::full",
     "aten::full_like", "aten::lift_fresh_copy", "aten::new_zeros", "aten::zeros",
     "aten::zeros_like"});

WorkClass ClassOfOp(const KernelTraits& traits) {
  switch (traits.family) {
    case KernelFamily::kTriton:
      return WorkClass::kTriton;
    case KernelFamily::kProduct:
    case KernelFamily::kAddedProducts:
    case KernelFamily::kGroupedProduct:
    case KernelFamily::kConvolution:
      return WorkClass::kProducts;
    case KernelFamily::kFlashAttention:
    case KernelFamily::kEfficientAttention:
    case KernelFamily::kCudnnAttention:
      return WorkClass::kAttention;
    case KernelFamily::kConcatenation:
    case KernelFamily::kCopyInto:
    case KernelFamily::kFill:
      return WorkClass::kCopies;
    default: {
      const std::string_view name = traits.target.substr(0, traits.target.find('.'));
      const bool copies =
          std::find(kCopyOperators.begin(), kCopyOperators.end(), name) != kCopyOperators.end();
      return copies ? WorkClass::kCopies : WorkClass::kOther;
    }
  }
}

WorkClass ClassOfPattern(MemoryPattern pattern) {
  switch (pattern) {
    case MemoryPattern::kCopy:
    case MemoryPattern::kWiden:
    case MemoryPattern::kNarrow:
    case MemoryPattern::kFill:
    case MemoryPattern::kOffload:
    case MemoryPattern::kReload:
    case MemoryPattern::kInputs:
      return WorkClass::kCopies;
    case MemoryPattern::kAdamW:
    case MemoryPattern::kAdamWUneven:
    case MemoryPattern::kFusedUpdate:
    case MemoryPattern::kFusedUpdateUneven:
      return WorkClass::kOptimizer;
    case MemoryPattern::kScale:
    case MemoryPattern::kClip:
    case MemoryPattern::kAdd:
    case MemoryPattern::kNorm:
    case MemoryPattern::kPasses:
      return WorkClass::kOther;
  }
  return WorkClass::kOther;
}

/// "triton_poi_fused_add_mul_3" -> "triton_poi_fused_add_mul".
std::string WithoutNumber(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered =
      last != std::string_view::npos && last + 1 < name.size() && name[last] == '_' && last > 0;
  return std::string(numbered ? name.substr(0, last) : name);
}

std::string CollectiveGroup(CollectiveKind kind) {
  return std::string(CollectiveKindName(kind));
}

std::string AttentionGroup(bool backward) {
  return backward ? "attention, backward" : "attention, forward";
}

}  // namespace

std::span<const std::string_view> WorkClassNames() {
  return kNames;
}

std::string_view WorkClassLabel(WorkClass work_class) {
  return kLabels[static_cast<std::size_t>(work_class)];
}

WorkClass ClassOfEvent(TracedKind kind, std::string_view name) {
  if (kind != TracedKind::kKernel) {
    return Has(name, "PtoP") ? WorkClass::kCollectives : WorkClass::kCopies;
  }
  if (name.starts_with("nccl")) {
    return WorkClass::kCollectives;
  }
  if (name.starts_with("triton_")) {
    return WorkClass::kTriton;
  }
  if (HasAny(name, kAttentionParts)) {
    return WorkClass::kAttention;
  }
  if (HasAny(name, kProductParts)) {
    return WorkClass::kProducts;
  }
  if (Has(name, "LpNormFunctor")) {  // of many tensors: clipping, not the optimizer
    return WorkClass::kOther;
  }
  if (HasAny(name, kOptimizerParts)) {
    return WorkClass::kOptimizer;
  }
  return HasAny(name, kCopyParts) ? WorkClass::kCopies : WorkClass::kOther;
}

WorkClass ClassOfTask(const Schedule& schedule, const Graph& graph, TaskId id) {
  const Task& task = schedule.task(id);
  const Work& work = schedule.work(task.work);
  if (const Collective* collective = schedule.FindCollective(id)) {
    return collective->ranks == 1 ? WorkClass::kCopies : WorkClass::kCollectives;
  }
  if (task.kind == TaskKind::kOptimizerStep) {
    return WorkClass::kOptimizer;
  }
  switch (work.kind) {
    case Work::Kind::kOp:
      return ClassOfOp(TraitsOf(graph, OpId(work.subject)));
    case Work::Kind::kCollective:
      return WorkClass::kCollectives;
    case Work::Kind::kMemory:
      return ClassOfPattern(work.pattern);
    case Work::Kind::kNone:
      break;
  }
  return WorkClass::kOther;
}

std::string GroupOfEvent(WorkClass work_class, std::string_view name) {
  switch (work_class) {
    case WorkClass::kTriton:
      return WithoutNumber(name);
    case WorkClass::kAttention:
      return AttentionGroup(HasAny(name, kBackwardParts));
    case WorkClass::kOptimizer:
      return "optimizer";
    case WorkClass::kCollectives:
      if (Has(name, "AllReduce")) {
        return CollectiveGroup(CollectiveKind::kAllReduce);
      }
      if (Has(name, "ReduceScatter")) {
        return CollectiveGroup(CollectiveKind::kReduceScatter);
      }
      // Copy engines gather.
      return Has(name, "AllGather") || Has(name, "PtoP")
                 ? CollectiveGroup(CollectiveKind::kAllGather)
                 : std::string(name);
    default:
      return std::string(name);
  }
}

std::string GroupOfTask(const Schedule& schedule, const Graph& graph, TaskId id) {
  const Task& task = schedule.task(id);
  const Work& work = schedule.work(task.work);
  const WorkClass work_class = ClassOfTask(schedule, graph, id);
  if (const Collective* collective = schedule.FindCollective(id)) {
    return CollectiveGroup(collective->kind);
  }
  if (work_class == WorkClass::kOptimizer) {
    return "optimizer";
  }
  if (work.kind == Work::Kind::kOp) {
    const OpId op(work.subject);
    if (work_class == WorkClass::kAttention) {
      return AttentionGroup(TraitsOf(graph, op).attention->backward);
    }
    const std::string_view target = graph.target(op);
    return work_class == WorkClass::kTriton ? WithoutNumber(target) : std::string(target);
  }
  const std::string kind(TaskKindName(task.kind));
  return work.kind == Work::Kind::kMemory
             ? kind + ", " + std::string(MemoryPatternName(work.pattern))
             : kind;
}

bool GroupsHaveNames(WorkClass work_class) {
  return work_class == WorkClass::kTriton || work_class == WorkClass::kAttention ||
         work_class == WorkClass::kOptimizer || work_class == WorkClass::kCollectives;
}

}  // namespace dcsim
