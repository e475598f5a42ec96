#include "tools/common/compiled_form.h"

#include <algorithm>
#include <filesystem>

#include "model/base/error.h"
#include "model/graph/borrowed_profile.h"
#include "model/ir/graph_reader.h"
#include "tools/common/config_path.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/file.h"

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

}  // namespace

AskedForm FindForm(const std::string& plan, const std::vector<Override>& overrides) {
  const YamlDocument document = LoadYaml(FindConfig(plan, "plans", "plan file"), "plan file");
  Json json = document.json();
  if (json.is_object() && json.value("format", Json()) == "dc-collectives/1") {
    json = Json(json.value("plan", Json()));
  } else if (IsDeepSpeedConfig(json)) {
    const Json zero = json.value("zero_optimization", Json());
    json = Json{{"stage", zero.is_object() ? zero.value("stage", Json()) : Json()}};
  }
  AskedForm form;
  const Json backend = Asked(json, overrides, "backend");
  const Json stage = Asked(json, overrides, "stage");
  form.backend = backend == "inductor" ? Backend::kInductor : Backend::kAten;
  form.stage = stage.is_number_integer() ? stage.get<int>() : 0;
  return form;
}

ProfiledWorkload TakeForm(ProfiledWorkload loaded, const AskedForm& form) {
  if (form.backend == Backend::kAten) {
    return loaded;
  }
  const std::string name =
      form.stage == 1 || form.stage == 2 ? "graph-inductor-zero12" : "graph-inductor-zero3";
  const Workload& workload = loaded.workload;
  const std::string path = (std::filesystem::path(workload.folder) / (name + ".json.gz")).string();
  if (!FileExists(path)) {
    throw Error(workload.folder + ": holds no " + name +
                ".json.gz, which backend inductor needs; record it with the command of its "
                "README.md and --backend inductor");
  }
  Workload compiled{workload.folder, ParseGraph(ReadFile(path), path)};
  if (!compiled.graph.compiled || !IsSameModel(workload.graph, compiled.graph)) {
    throw Error(path +
                ": expected a compiled form of the graph beside it, with the same name, "
                "options, tokens and parameters; record both again");
  }
  if (loaded.profile) {
    loaded.profile = BorrowProfile(*loaded.profile, workload.graph, compiled.graph);
  }
  loaded.workload = std::move(compiled);
  return loaded;
}

}  // namespace dcsim
