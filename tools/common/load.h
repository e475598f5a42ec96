#pragma once

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/machine/cluster.h"
#include "sim/analysis/predict.h"
#include "sim/search/space.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/yaml_document.h"

namespace dcsim {

/// A recorded workload: the folder that dcrecord writes.
struct Workload {
  std::string folder;
  Graph graph;
};

/// Path of the graph in a workload's folder. Throws Error when the folder or the file is missing.
std::string GraphFile(const std::string& folder);

/// Reads `folder`/graph.json.xz, or graph.json. Throws Error when the folder or the file is
/// missing, with the nearest folder name beside it, or broken.
Workload LoadWorkload(const std::string& folder);

/// Name of a compiled form in file names: "inductor-zero3", "inductor-zero12" for stages 1 and 2,
/// or "inductor-layers", whose layers are compiled each on its own.
std::string FormName(int stage, bool layers);

/// Name of a graph's profile on a GPU: "profile-h200.json.xz" for a workload's own graph on an
/// "NVIDIA H200", "profile-h200-inductor-zero3.json.xz" for a compiled form.
std::string ProfileFileName(const std::string& gpu, const Graph& graph);

/// Where op times come from: the workload's profile where there is one, or the roofline alone.
enum class OpTimes : std::uint8_t { kProfiled, kRoofline };

/// The profile of a workload's graph on this GPU, or nothing when there is none or it is not asked
/// for.
std::optional<Profile> FindProfile(const Workload& workload,
                                   const std::string& gpu,
                                   OpTimes times = OpTimes::kProfiled);

/// A workload, and its profile.
struct ProfiledWorkload {
  Workload workload;
  std::optional<Profile> profile;
  std::string gpu = {};  // whose profiles are taken; "": none
};

/// The workload with what FindProfile finds for it.
ProfiledWorkload WithProfile(Workload workload,
                             const std::string& gpu,
                             OpTimes times = OpTimes::kProfiled);

/// The same of the workload in a folder.
ProfiledWorkload LoadProfiledWorkload(const std::string& folder,
                                      const std::string& gpu,
                                      OpTimes times = OpTimes::kProfiled);

/// Reads a YAML or JSON file (IsHjson); `what` it is is said when it is missing, with the nearest
/// name beside it.
YamlDocument LoadYaml(const std::string& path, const std::string& what);

/// A plan, cluster or space that an option names.
struct NamedDocument {
  std::string path;  // of its file; of a text "plan", "cluster" or "space"
  YamlDocument document;
  // Of a plan that is a configuration of accelerate, whose document is the DeepSpeed configuration
  // that it makes (ReadAccelerateConfig):
  std::optional<int> processes = {};
  std::string processes_place = {};
  std::vector<std::string> notes = {};
};

/// What `name` means: where it begins with '{' the document itself, as YAML or JSON, whose faults
/// name fields; else a file, or the one of this name that comes with the program (FindConfig).
///
///   kind   "plan", "cluster" or "space"
NamedDocument LoadNamed(const std::string& name, const std::string& kind);

/// Reads a space (dc-space/1), as LoadNamed finds it.
SearchSpace LoadSpace(const std::string& name);

/// "--set key=value" of the command line.
struct Override {
  std::string key;    // "stage", or "a.b" for a field of a field
  std::string value;  // as YAML writes it: a scalar, [a, list] or {a: map}
  std::string option = "--set";
};

/// Reads a cluster, as LoadNamed finds it; its "gpu" is the path of a GPU file, from the cluster
/// file's folder, of a text from the working folder. Overrides change fields, "gpu"
/// before those of that GPU ("gpu.memory"), before anything is checked.
Cluster LoadCluster(const std::string& path, const std::vector<Override>& overrides = {});

/// The same of a document that has been parsed; its "gpu" is a path from `folder`.
Cluster ReadClusterDocument(YamlDocument document,
                            const std::filesystem::path& folder,
                            const std::vector<Override>& overrides = {});

/// Reads the GPU file that a cluster file in `folder` calls `name`; `place` is said where there is
/// none.
GpuSpec LoadGpu(const std::string& name,
                const std::filesystem::path& folder,
                const std::string& place);

/// Splits the "key=value" of an option. Throws Error without '='.
Override ParseOverride(const std::string& text, const std::string& option = "--set");
/// The same for all uses of an option.
std::vector<Override> ParseOverrides(const std::vector<std::string>& texts,
                                     const std::string& option);

/// Whose batch sizes a DeepSpeed configuration is read with: its own, or those of the recording and
/// ranks that it is used for. Then it only says how many micro-steps it names.
enum class BatchSizes : std::uint8_t { kFile, kRecording };

/// What a DeepSpeed configuration is read for with these batch sizes.
DeepSpeedJob DeepSpeedJobOf(const Graph& graph, int ranks, BatchSizes batches);

/// How a plan file is read.
struct PlanReading {
  BatchSizes batches = BatchSizes::kFile;
  std::ostream* notes = &std::cerr;  // takes what of a DeepSpeed configuration the plan leaves out
};

/// Reads a plan, as LoadNamed finds it: a dc-plan-spec/1, which is resolved for the graph, its
/// backend and ranks, a dc-plan/1, whose ranks must be these, a dc-collectives/1, whose plan must
/// make the collectives that it lists, or a DeepSpeed configuration, which becomes a spec
/// (ReadDeepSpeedConfig; what that leaves out goes to the notes). Overrides change fields of a
/// spec. A policy that goes by measurements knows nothing about the machine.
Plan LoadPlan(const std::string& path,
              const std::vector<Override>& overrides,
              const Graph& graph,
              int ranks);

/// The same for a workload on a machine that is known: policies go by what they would measure
/// there.
Plan LoadPlan(const std::string& path,
              const std::vector<Override>& overrides,
              const PredictionInputs& inputs,
              int ranks,
              const PlanReading& reading = {});

/// What LoadPlan makes of a file that holds this document; `name` stands for the file in errors.
/// Notes on what a DeepSpeed configuration leaves out are dropped. The plan is for the graph's own
/// backend.
Plan PlanOfDocument(const Json& document,
                    const std::string& name,
                    const PredictionInputs& inputs,
                    int ranks);

}  // namespace dcsim
