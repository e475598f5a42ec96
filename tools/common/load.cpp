#include "tools/common/load.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/cost/kernel_models.h"
#include "model/ir/collective_record.h"
#include "model/ir/graph_reader.h"
#include "model/ir/plan_reader.h"
#include "model/ir/profile_reader.h"
#include "model/machine/gpu_reader.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "sim/analysis/policy_measurements.h"
#include "tools/common/accelerate_config.h"
#include "tools/common/config_path.h"
#include "tools/common/file.h"
#include "tools/common/hjson.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// "a.b" -> "/a/b".
std::string PointerOfKey(const std::string& key) {
  std::string pointer = "/" + key;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

void Apply(const std::vector<Override>& overrides, YamlDocument& document) {
  for (const Override& each : overrides) {
    const std::string where = each.option + " " + each.key + "=" + each.value;
    const bool flow = each.value.starts_with('[') || each.value.starts_with('{');
    document.Set(PointerOfKey(each.key),
                 flow ? YamlDocument::Parse(each.value, where).json() : ParseYamlScalar(each.value),
                 where);
  }
}

/// A spec that names no backend is for the graph's; eager DeepSpeed runs operators alone.
void TakeBackendOf(const Graph& graph, YamlDocument& document) {
  const Json& spec = document.json();
  if (graph.compiled && spec.is_object() && !spec.contains("backend") &&
      spec.value("policy", Json()) != "deepspeed-eager") {
    document.Set("/backend", "inductor", "backend of the recording");
  }
}

/// `machine` may be null: nothing is known about it.
Plan ResolveSpec(YamlDocument& document,
                 const std::vector<Override>& overrides,
                 const Graph& graph,
                 int ranks,
                 const PredictionInputs* machine) {
  Apply(overrides, document);
  TakeBackendOf(graph, document);
  const PlanSpec spec = ReadPlanSpec(document.json(), document.locator());
  const bool measures = machine != nullptr && UsesMeasurements(spec);
  return Resolve(spec, graph, ranks, measures ? MeasureForPolicy(*machine, ranks) : PolicyInputs());
}

/// A DeepSpeed configuration as the spec that it becomes, whose keys have their places in the file.
/// `notes` takes what the spec leaves out.
YamlDocument SpecOfDeepSpeedConfig(const YamlDocument& document,
                                   const std::string& path,
                                   const DeepSpeedJob& job,
                                   std::ostream& notes) {
  const Locator locate = document.locator();
  DeepSpeedSpec read = ReadDeepSpeedConfig(document.json(), locate, job);
  for (const std::string& note : read.notes) {
    notes << path << ": " << note << "\n";
  }
  std::map<std::string, std::string> places = {{"", path}};
  for (const auto& [key, origin] : read.origins) {
    places["/" + key] = locate(origin);
  }
  return {std::move(read.spec), std::move(places)};
}

Plan TakePlan(const Json& document,
              const Locator& locate,
              const std::vector<Override>& overrides,
              const Graph& graph,
              int ranks,
              const std::string& path) {
  if (!overrides.empty()) {
    throw Error("--set " + overrides.front().key + ": " + path +
                " is a plan with every decision made; only a plan spec can be changed");
  }
  Plan plan = ReadPlan(document, graph, locate);
  if (plan.ranks != ranks) {
    throw Error(path + ": the plan is for " + std::to_string(plan.ranks) + " ranks, asked for " +
                std::to_string(ranks) + "; use --gpus " + std::to_string(plan.ranks));
  }
  const auto faults = FindPlanFaults(plan, graph);
  if (!faults.empty()) {
    throw Error(path + ": " + Join(faults, "\n" + path + ": "));
  }
  return plan;
}

/// What accelerate's file says besides the plan: notes, and ranks, which must be these.
void CheckAccelerate(const NamedDocument& named, int ranks, const PlanReading& reading) {
  for (const std::string& note : named.notes) {
    *reading.notes << named.path << ": " << note << "\n";
  }
  const int processes = named.processes.value_or(ranks);
  if (processes != ranks && reading.batches == BatchSizes::kFile) {
    throw Error(named.processes_place + ": the file is for " + std::to_string(processes) +
                " processes, asked for " + std::to_string(ranks) + " ranks; use --gpus " +
                std::to_string(processes));
  }
}

/// The plan of a recording of collectives, which for this graph must make the very same ones.
Plan TakeRecording(const YamlDocument& document,
                   const std::vector<Override>& overrides,
                   const Graph& graph,
                   int ranks,
                   const std::string& path) {
  const Json& json = document.json();
  const Locator locate = document.locator();
  Faults faults(locate);
  const Path root;
  ObjectReader fields(json, root, faults);
  const Json* recorded = fields.RequireArray("collectives");
  const Json* recorded_plan = fields.Require("plan");
  faults.ThrowIfAny();
  const Json& plan_json = *recorded_plan;
  const auto locate_plan = [&](const std::string& pointer) { return locate("/plan" + pointer); };
  Plan plan = TakePlan(plan_json, locate_plan, overrides, graph, ranks, path);
  const Json expected =
      PrintCollectiveRecord(Lower(plan, graph, nullptr, {}), PrintPlan(plan, graph), graph);
  for (const std::string key : {"workload", "ranks"}) {
    if (json.value(key, Json()) != expected[key]) {
      throw Error(locate("/" + key) + ": expected " + expected[key].dump());
    }
  }
  const std::size_t count = std::max(recorded->size(), expected["collectives"].size());
  for (std::size_t i = 0; i < count; ++i) {
    const Json own = i < recorded->size() ? (*recorded)[i] : Json();
    const Json made = i < expected["collectives"].size() ? expected["collectives"][i] : Json();
    if (own != made) {
      throw Error(locate("/collectives/" + std::to_string(i)) +
                  ": the plan of this recording makes " +
                  (made.is_null() ? "no such collective" : made.dump()));
    }
  }
  return plan;
}

/// What a plan is for. `machine` may be null: nothing is known about it.
struct PlanUse {
  const Graph& graph;
  int ranks;
  const PredictionInputs* machine;
  PlanReading reading = {};
};

Plan ReadPlanDocument(NamedDocument named,
                      const std::vector<Override>& overrides,
                      const PlanUse& use) {
  YamlDocument& document = named.document;
  const std::string& path = named.path;
  const Json& json = document.json();
  CheckAccelerate(named, use.ranks, use.reading);
  if (IsDeepSpeedConfig(json)) {
    const DeepSpeedJob job = DeepSpeedJobOf(use.graph, use.ranks, use.reading.batches);
    YamlDocument spec = SpecOfDeepSpeedConfig(document, path, job, *use.reading.notes);
    return ResolveSpec(spec, overrides, use.graph, use.ranks, use.machine);
  }
  const Json format = json.is_object() ? json.value("format", Json()) : Json();
  if (format == "dc-plan/1") {
    return TakePlan(json, document.locator(), overrides, use.graph, use.ranks, path);
  }
  if (format == "dc-collectives/1") {
    return TakeRecording(document, overrides, use.graph, use.ranks, path);
  }
  return ResolveSpec(document, overrides, use.graph, use.ranks, use.machine);
}

}  // namespace

YamlDocument LoadYaml(const std::string& path, const std::string& what) {
  if (!FileExists(path)) {
    throw Error(path + ": no such " + what + DidYouMeanFile(path));
  }
  const std::string text = ReadFile(path);
  return IsHjson(text, path) ? ParseHjson(text, path) : YamlDocument::Parse(text, path);
}

std::string GraphFile(const std::string& folder) {
  if (!FileExists(folder)) {
    const std::string committed = "traces/" + folder;
    throw Error(
        folder + ": no such workload folder" +
        (FileExists(committed) ? ", did you mean '" + committed + "'?" : DidYouMeanFile(folder)));
  }
  if (!IsDirectory(folder)) {
    throw Error(folder + ": expected a workload folder, found a file");
  }
  for (const std::string name : {"graph.json.xz", "graph.json"}) {
    std::string path = (fs::path(folder) / name).string();
    if (FileExists(path)) {
      return path;
    }
  }
  throw Error(folder + ": holds no graph.json.xz; record one with python -m dcrecord");
}

Workload LoadWorkload(const std::string& folder) {
  const std::string path = GraphFile(folder);
  return {folder, ParseGraph(ReadFile(path), path)};
}

std::string FormName(int stage, bool layers) {
  const std::string of_stage = stage == 1 || stage == 2 ? "zero12" : "zero3";
  return "inductor-" + (layers ? "layers" : of_stage);
}

std::string ProfileFileName(const std::string& gpu, const Graph& graph) {
  std::string name = gpu.starts_with("NVIDIA ") ? gpu.substr(7) : gpu;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  });
  if (graph.compiled) {
    const std::vector<int>& stages = graph.compiled->stages;
    name += "-" + FormName(stages.empty() ? 0 : stages.front(), stages.empty());
  }
  return "profile-" + name + ".json.xz";
}

std::optional<Profile> FindProfile(const Workload& workload,
                                   const std::string& gpu,
                                   OpTimes times) {
  if (times == OpTimes::kRoofline) {
    return std::nullopt;
  }
  const std::string path =
      (fs::path(workload.folder) / ProfileFileName(gpu, workload.graph)).string();
  if (!FileExists(path)) {
    return std::nullopt;
  }
  return ParseProfile(ReadFile(path), workload.graph, path);
}

ProfiledWorkload WithProfile(Workload workload, const std::string& gpu, OpTimes times) {
  std::optional<Profile> profile = FindProfile(workload, gpu, times);
  return {std::move(workload), std::move(profile), times == OpTimes::kProfiled ? gpu : ""};
}

ProfiledWorkload LoadProfiledWorkload(const std::string& folder,
                                      const std::string& gpu,
                                      OpTimes times) {
  return WithProfile(LoadWorkload(folder), gpu, times);
}

namespace {

/// A file beside the cluster file, or the one of this name that comes with the program.
std::string FindGpuFile(const std::string& name, const fs::path& folder, const std::string& place) {
  std::string beside = (folder / name).string();
  if (FileExists(beside)) {
    return beside;
  }
  std::string found;
  try {
    found = FindConfig(name, "gpus", "GPU file");
  } catch (const Error& error) {
    throw Error(place + ": " + error.what());
  }
  if (found == name) {
    throw Error(place + ": no such file " + beside + DidYouMeanFile(beside));
  }
  return found;
}

}  // namespace

Cluster LoadCluster(const std::string& path, const std::vector<Override>& overrides) {
  NamedDocument named = LoadNamed(path, "cluster");
  return ReadClusterDocument(std::move(named.document), fs::path(named.path).parent_path(),
                             overrides);
}

Cluster ReadClusterDocument(YamlDocument document,
                            const std::filesystem::path& folder,
                            const std::vector<Override>& overrides) {
  if (!document.json().is_object()) {
    return ReadCluster(document.json(), document.locator(), kKernelRatesReader);
  }
  // Another GPU's file first: the fields of "gpu." are its.
  std::vector<Override> fields;
  for (const Override& each : overrides) {
    if (each.key == "gpu") {
      Apply({each}, document);
    } else {
      fields.push_back(each);
    }
  }
  const auto gpu = document.json().find("gpu");
  if (gpu != document.json().end() && gpu->is_string()) {
    document.Embed(
        "/gpu", LoadYaml(FindGpuFile(gpu->get<std::string>(), folder, document.locator()("/gpu")),
                         "GPU file"));
  }
  Apply(fields, document);
  return ReadCluster(document.json(), document.locator(), kKernelRatesReader);
}

GpuSpec LoadGpu(const std::string& name, const fs::path& folder, const std::string& place) {
  const YamlDocument document = LoadYaml(FindGpuFile(name, folder, place), "GPU file");
  Faults faults(document.locator());
  GpuSpec gpu = ReadGpu(document.json(), Path(), faults, kKernelRatesReader);
  faults.ThrowIfAny();
  return gpu;
}

NamedDocument LoadNamed(const std::string& name, const std::string& kind) {
  NamedDocument named;
  if (name.starts_with('{')) {
    named = {kind, YamlDocument(YamlDocument::Parse(name, kind).json(), {{"", kind}})};
  } else {
    const std::string what = kind + " file";
    named.path = kind == "space" ? name : FindConfig(name, kind + "s", what);
    named.document = LoadYaml(named.path, what);
  }
  if (kind == "plan" && IsAccelerateConfig(named.document.json())) {
    AccelerateConfig config = ReadAccelerateConfig(named.document, named.path);
    return {named.path, std::move(config.deepspeed), config.processes,
            std::move(config.processes_place), std::move(config.notes)};
  }
  return named;
}

SearchSpace LoadSpace(const std::string& name) {
  const YamlDocument document = LoadNamed(name, "space").document;
  return ReadSearchSpace(document.json(), document.locator());
}

Override ParseOverride(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    const std::string example = option == "--set" ? "stage=2" : "nodes=2";
    throw Error(option + " " + text + ": expected key=value, such as " + example);
  }
  return {text.substr(0, equals), text.substr(equals + 1), option};
}

std::vector<Override> ParseOverrides(const std::vector<std::string>& texts,
                                     const std::string& option) {
  std::vector<Override> overrides;
  overrides.reserve(texts.size());
  for (const std::string& text : texts) {
    overrides.push_back(ParseOverride(text, option));
  }
  return overrides;
}

DeepSpeedJob DeepSpeedJobOf(const Graph& graph, int ranks, BatchSizes batches) {
  return {graph, ranks, PolicyNames(), batches == BatchSizes::kRecording};
}

Plan LoadPlan(const std::string& path,
              const std::vector<Override>& overrides,
              const Graph& graph,
              int ranks) {
  return ReadPlanDocument(LoadNamed(path, "plan"), overrides, {graph, ranks, nullptr});
}

Plan LoadPlan(const std::string& path,
              const std::vector<Override>& overrides,
              const PredictionInputs& inputs,
              int ranks,
              const PlanReading& reading) {
  return ReadPlanDocument(LoadNamed(path, "plan"), overrides,
                          {inputs.graph, ranks, &inputs, reading});
}

Plan PlanOfDocument(const Json& document,
                    const std::string& name,
                    const PredictionInputs& inputs,
                    int ranks) {
  std::ostringstream notes;
  return ReadPlanDocument({name, YamlDocument::Parse(document.dump(), name)}, {},
                          {inputs.graph, ranks, &inputs, {BatchSizes::kFile, &notes}});
}

}  // namespace dcsim
