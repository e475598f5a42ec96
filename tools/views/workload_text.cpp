#include "tools/views/workload_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/text.h"
#include "model/cost/kernel_models.h"
#include "model/cost/kernel_traits.h"
#include "model/graph/step_facts.h"
#include "model/ir/graph_names.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

std::string Count(std::size_t count) {
  return Thousands(static_cast<double>(count));
}

std::string ParamLines(const Graph& graph) {
  Bytes bytes;
  std::size_t frozen = 0;
  for (const Param& param : graph.params) {
    bytes += graph.value(param.value).bytes();
    frozen += param.requires_grad ? 0 : 1;
  }
  std::string note = "in " + Count(graph.params.size()) + " tensors, " + FormatBytes(bytes);
  if (frozen > 0) {
    note += ", " + Count(frozen) + " tensors frozen";
  }
  return TableLine("parameters", Thousands(static_cast<double>(graph.parameter_count())), note);
}

std::string GraphLine(const Graph& graph, const StepFacts& facts, std::size_t g) {
  const Subgraph& subgraph = graph.graphs[g];
  std::size_t views = 0;
  std::size_t recomputed = 0;
  std::size_t launches = 0;
  std::set<std::uint32_t> kernels;
  for (std::size_t i = 0; i < subgraph.op_count; ++i) {
    const Op& op = graph.ops[subgraph.first_op + i];
    views += facts.is_view[subgraph.first_op + i] ? 1U : 0U;
    recomputed += op.recompute ? 1U : 0U;
    if (op.launch) {
      ++launches;
      kernels.insert(op.launch->kernel);
    }
  }
  std::string note = "ops, " + Count(views) + " of them views without a kernel";
  if (graph.compiled) {
    note += ", " + Count(launches) + " launches of " + Count(kernels.size()) + " Triton kernels";
  }
  if (recomputed > 0) {
    note += ", " + Count(recomputed) + " recompute the forward";
  }
  const auto name = kDirectionNames[static_cast<std::size_t>(subgraph.direction)];
  return TableLine(std::string(name) + " graph", Count(subgraph.op_count), note);
}

/// Bytes of the distinct storages that forward graphs keep for backward ones, parameters apart.
Bytes SavedBytes(const Graph& graph, const StepFacts& facts) {
  std::vector<bool> counted(graph.storages.size());
  Bytes bytes;
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      const std::size_t storage = graph.storage_of(output.value).index();
      const bool activation = output.kind == GraphOutputKind::kSaved &&
                              !facts.producer[storage].is_none() && !counted[storage];
      if (activation) {
        counted[storage] = true;
        bytes += graph.storages[storage].bytes;
      }
    }
  }
  return bytes;
}

std::string HeldLine(const Graph& graph) {
  std::vector<std::string> names;
  Bytes bytes;
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kOutput && output.held) {
        names.push_back(output.name);
        bytes += graph.storage(graph.storage_of(output.value)).bytes;
      }
    }
  }
  return names.empty() ? ""
                       : TableLine("held by the caller", FormatBytes(bytes), Join(names, ", "));
}

constexpr std::array<std::string_view, 6> kClassNames = {
    "matrix products", "attention",         "attention backward",
    "everything else", "Triton, pointwise", "Triton, reductions"};

struct Coverage {
  std::array<Duration, kClassNames.size()> time{};
  std::size_t kernels = 0;
  std::size_t measured = 0;
  Duration guessed;                       // of kernels that no profile has shown
  std::set<std::string_view> guessed_of;  // their operators
};

/// Index into kClassNames.
std::size_t ClassOf(const KernelTraits& of) {
  if (of.triton == nullptr) {
    return static_cast<std::size_t>(of.op_class());
  }
  return kClassNames.size() - (of.triton->kind == KernelKind::kPointwise ? 2 : 1);
}

Coverage CoverageOf(const Graph& graph, const Profile* profile, const Cluster& cluster) {
  const StepFacts facts = AnalyseStep(graph);
  Coverage coverage;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (facts.is_view[i]) {
      continue;
    }
    const OpId id(i);
    const OpProfile* entry = profile == nullptr ? nullptr : profile->FindOp(id);
    const KernelTraits traits = TraitsOf(graph, id);
    ++coverage.kernels;
    coverage.measured += entry != nullptr ? 1 : 0;
    const Duration time = entry != nullptr ? entry->device_time : KernelTime(traits, cluster.gpu);
    coverage.time[ClassOf(traits)] += time;
    if (entry == nullptr && traits.triton == nullptr && !traits.shown) {
      coverage.guessed += time;
      coverage.guessed_of.insert(traits.target);
    }
  }
  return coverage;
}

double ShareOf(Duration part, Duration all) {
  return static_cast<double>(part.ns()) / static_cast<double>(std::max<std::int64_t>(1, all.ns()));
}

/// Times that may be off by several times, and of what.
std::string GuessedLine(const Coverage& coverage, Duration all) {
  if (coverage.guessed_of.empty()) {
    return "";
  }
  const std::vector<std::string> names(coverage.guessed_of.begin(), coverage.guessed_of.end());
  return TableLine("  a guess", FormatDuration(coverage.guessed),
                   Percent(ShareOf(coverage.guessed, all)) +
                       " of kernels that no profile has shown: " + Join(names, ", "));
}

/// "compiled by Inductor for ZeRO-1 and 2".
std::string FormTitle(const Graph& compiled) {
  std::vector<std::string> stages;
  for (const int stage : compiled.compiled->stages) {
    stages.push_back(std::to_string(stage));
  }
  return stages.empty() ? "compiled by Inductor layer by layer, for fsdp"
                        : "compiled by Inductor for ZeRO-" + Join(stages, " and ");
}

}  // namespace

std::string PrintWorkloadText(const Graph& graph) {
  const StepFacts facts = AnalyseStep(graph);
  std::string text = graph.name + ", graph " + HexDigits(graph.hash) +
                     ", recorded by: " + graph.notes.command + "\n\n" + ParamLines(graph);
  text += TableLine("tokens of a micro-step", Thousands(static_cast<double>(graph.tokens)), "");
  for (std::size_t g = 0; g < graph.graphs.size(); ++g) {
    text += GraphLine(graph, facts, g);
  }
  text += TableLine("saved for the backward", FormatBytes(SavedBytes(graph, facts)), "activations");
  text += HeldLine(graph);
  const double tera = static_cast<double>(CountModelFlops(graph)) / 1e12;
  text += TableLine("model FLOPs", Thousands(tera), "TFLOP a micro-step, recomputation left out");
  return text;
}

std::string PrintFormText(const Graph& compiled) {
  const StepFacts facts = AnalyseStep(compiled);
  std::string text = "\n" + FormTitle(compiled) + "\n";
  for (std::size_t g = 0; g < compiled.graphs.size(); ++g) {
    text += GraphLine(compiled, facts, g);
  }
  return text + TableLine("saved for the backward", FormatBytes(SavedBytes(compiled, facts)),
                          "activations");
}

std::string PrintCoverageText(const Graph& graph,
                              const Profile* profile,
                              const Cluster& cluster,
                              const std::string& folder) {
  const Coverage coverage = CoverageOf(graph, profile, cluster);
  Duration all;
  for (const Duration time : coverage.time) {
    all += time;
  }
  std::string text =
      "\n" + (graph.compiled ? FormTitle(graph) + ", " : "") + "on " + cluster.gpu.name + " (" +
      cluster.name + ")\n" +
      TableLine("ops measured", Count(coverage.measured),
                "of " + Count(coverage.kernels) + " that launch kernels") +
      TableLine("op times of a micro-step", FormatDuration(all),
                profile == nullptr ? "summed, estimated"
                                   : "summed, as profiled, estimated where the profile says none");
  const std::size_t classes = kClassNames.size() - (graph.compiled ? 0 : 2);
  for (std::size_t i = 0; i < classes; ++i) {
    text += TableLine("  " + std::string(kClassNames[i]), FormatDuration(coverage.time[i]),
                      Percent(ShareOf(coverage.time[i], all)));
  }
  text += GuessedLine(coverage, all);
  if (coverage.measured < coverage.kernels && !graph.compiled) {
    text += "\nmissing: op times on this GPU; on a machine that has one: dc-run profile " + folder +
            "\n";
  }
  return text;
}

}  // namespace dcsim
