#include "tools/dc_run/suite.h"

#include <filesystem>

#include "model/base/text.h"
#include "model/ir/name_reader.h"
#include "model/machine/machine_fields.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// A path of the suite, as seen from where the program runs.
std::string Resolved(const fs::path& folder, const std::string& path) {
  return (folder / path).lexically_normal().string();
}

std::vector<std::string> ReadPaths(ObjectReader& object,
                                   std::string_view key,
                                   const fs::path& folder) {
  std::vector<std::string> paths;
  const Json* list = object.RequireArray(key);
  const Path path = object.At(key);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto text = ReadString((*list)[i], Path(path, i), object.faults())) {
      paths.push_back(Resolved(folder, *text));
    }
  }
  return paths;
}

/// A scalar as `--set` takes it.
std::string ScalarText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void ReadChanges(ObjectReader& object, SuiteCase& target) {
  const Json* changes = object.Find("set");
  if (changes == nullptr) {
    return;
  }
  if (!changes->is_object()) {
    object.faults().Add(object.At("set"), "expected keys of a plan spec and their values");
    return;
  }
  for (const auto& [key, value] : changes->items()) {
    target.changes.push_back(key + "=" + ScalarText(value));
  }
}

SuiteCase ReadCase(const Json& value, const Path& path, Faults& faults, const fs::path& folder) {
  ObjectReader object(value, path, faults);
  SuiteCase read;
  if (object.Required("workload", ReadString, read.workload)) {
    read.workload = Resolved(folder, read.workload);
  }
  read.plans = ReadPaths(object, "plans", folder);
  ReadChanges(object, read);
  object.Optional("name", ReadName, read.name);
  if (!read.changes.empty() && read.name.empty()) {
    faults.Add(path, "key 'name' is missing; a case with changes needs one for its results");
  }
  object.Optional("timelines", ReadBool, read.timelines);
  object.RejectUnknown();
  return read;
}

}  // namespace

Suite LoadSuite(const std::string& path) {
  const YamlDocument document = LoadYaml(path, "suite file");
  const fs::path folder = fs::path(path).parent_path();
  const Locator locate = document.locator();
  RequireFormat(document.json(), "dc-suite/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document.json(), root, faults);
  Suite suite;
  object.Require("format");
  if (object.Required("cluster", ReadString, suite.cluster)) {
    suite.cluster = Resolved(folder, suite.cluster);
  }
  object.Require("gpus");
  ReadOptionalCount(object, "gpus", suite.gpus);
  ReadOptionalCount(object, "warmup", suite.warmup);
  ReadOptionalCount(object, "steps", suite.steps);
  if (const Json* cases = object.RequireArray("cases")) {
    const Path here = object.At("cases");
    for (std::size_t i = 0; i < cases->size(); ++i) {
      suite.cases.push_back(ReadCase((*cases)[i], Path(here, i), faults, folder));
    }
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  return suite;
}

}  // namespace dcsim
