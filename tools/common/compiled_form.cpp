#include "tools/common/compiled_form.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <sstream>

#include "model/base/error.h"
#include "model/graph/borrowed_profile.h"
#include "model/ir/graph_reader.h"
#include "model/ir/plan_options.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/file.h"
#include "tools/common/record_command.h"

namespace dcsim {
namespace {

/// What an override, or else the document, gives to a key.
Json Asked(const Json& document, const std::vector<Override>& overrides, const std::string& key) {
  Json value = document.is_object() ? document.value(key, Json()) : Json();
  for (const Override& each : overrides) {
    value = each.key == key ? ParseYamlScalar(each.value) : value;
  }
  return value;
}

bool IsSameModel(const Graph& a, const Graph& b) {
  const auto same = [&](const Param& one, const Param& other) {
    const Value& mine = a.value(one.value);
    const Value& its = b.value(other.value);
    return one.name == other.name && mine.dtype == its.dtype && mine.shape == its.shape;
  };
  return a.name == b.name && a.tokens == b.tokens && a.notes.options == b.notes.options &&
         std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same);
}

/// Backend of a spec. DeepSpeed compiles with Inductor unless told otherwise, and runs operators
/// without DeepCompile.
void FindBackend(const Json& spec, const std::vector<Override>& overrides, AskedForm& form) {
  const Json backend = Asked(spec, overrides, "backend");
  const Json policy = Asked(spec, overrides, "policy");
  form.layers = policy == "fsdp";
  if (!backend.is_null() || policy == "deepspeed-eager" || form.layers) {
    form.backend = BackendNamed(backend);
    return;
  }
  const std::string passes = Asked(spec, overrides, "passes").dump();
  const bool moves = Asked(spec, overrides, "offload_activation") == true ||
                     passes.find("offload_activation") != std::string::npos;
  if (moves) {
    form.why = "offload_activation: compiled graphs use the memory of activations again";
  } else {
    form.backend.reset();
  }
}

}  // namespace

AskedForm FindForm(const std::string& plan,
                   const std::vector<Override>& overrides,
                   const DeepSpeedJob& job) {
  const YamlDocument document = LoadNamed(plan, "plan").document;
  Json json = document.json();
  if (json.is_object() && json.value("format", Json()) == "dc-collectives/1") {
    json = Json(json.value("plan", Json()));
  } else if (IsDeepSpeedConfig(json)) {
    json = ReadDeepSpeedConfig(json, document.locator(), job).spec;
  }
  AskedForm form;
  FindBackend(json, overrides, form);
  if (!form.backend && json.is_object() && json.value("format", Json()) == "dc-plan/1") {
    form.backend = Backend::kAten;
  }
  const Json stage = Asked(json, overrides, "stage");
  form.stage = stage.is_number_integer() ? stage.get<int>() : 0;
  return form;
}

std::string FormFile(const std::string& folder, int stage, bool layers) {
  const std::string name = "graph-" + FormName(stage, layers) + ".json.xz";
  return (std::filesystem::path(folder) / name).string();
}

std::string CompiledCommand(const Workload& workload, bool layers) {
  const std::string backend = layers ? "inductor-layers" : "inductor";
  std::string command =
      RecordCommand(workload.graph).Set("--backend", backend).TextInto(workload.folder);
  if (!command.empty()) {
    return command;
  }
  return layers ? "dcrecord --backend " + backend : "python -m dcrecord lower " + workload.folder;
}

namespace {

/// The compiled form that is asked for; nothing for operators.
std::optional<Workload> FindCompiled(const Workload& workload,
                                     const AskedForm& form,
                                     std::ostream& notes) {
  const std::string path = FormFile(workload.folder, form.stage, form.layers);
  const std::string operators = workload.folder + ": backend aten, operator by operator: ";
  if (form.backend == Backend::kAten) {
    if (!form.why.empty() && FileExists(path)) {
      notes << operators << form.why << "\n";
    }
    return std::nullopt;
  }
  if (!FileExists(path)) {
    const std::string missing =
        "there is no " + path + "; recorded by: " + CompiledCommand(workload, form.layers);
    if (form.backend) {
      throw Error(workload.folder + ": backend inductor: " + missing);
    }
    notes << operators << missing << "\n";
    return std::nullopt;
  }
  Workload compiled{workload.folder, ParseGraph(ReadFile(path), path)};
  if (!compiled.graph.compiled || !IsSameModel(workload.graph, compiled.graph)) {
    throw Error(path +
                ": expected a compiled form of the graph beside it, with the same name, "
                "options, tokens and parameters; record both again");
  }
  return compiled;
}

/// With the form's own profile, else with what the operators' one says of its calls.
ProfiledWorkload WithCompiled(ProfiledWorkload loaded, std::optional<Workload> compiled) {
  if (!compiled) {
    return loaded;
  }
  std::optional<Profile> own;
  if (!loaded.gpu.empty()) {
    own = FindProfile(*compiled, loaded.gpu);
  }
  if (own) {
    loaded.profile = std::move(own);
  } else if (loaded.profile) {
    loaded.profile = BorrowProfile({std::move(loaded.workload.graph), std::move(*loaded.profile)},
                                   compiled->graph);
  }
  loaded.workload = *std::move(compiled);
  return loaded;
}

}  // namespace

ProfiledWorkload TakeForm(ProfiledWorkload loaded, const AskedForm& form, std::ostream& notes) {
  std::optional<Workload> compiled = FindCompiled(loaded.workload, form, notes);
  return WithCompiled(std::move(loaded), std::move(compiled));
}

ProfiledWorkload TakeForm(Workload recorded,
                          const std::string& gpu,
                          OpTimes times,
                          const AskedForm& form,
                          std::ostream& notes) {
  auto profile = std::async(std::launch::async, [&] { return FindProfile(recorded, gpu, times); });
  std::ostringstream said;  // printed only where the profile has no fault
  std::optional<Workload> compiled = FindCompiled(recorded, form, said);
  std::optional<Profile> read = profile.get();
  notes << said.str();
  return WithCompiled(
      {std::move(recorded), std::move(read), times == OpTimes::kProfiled ? gpu : ""},
      std::move(compiled));
}

}  // namespace dcsim
