#include "tools/dc_run/suite.h"

#include <filesystem>

#include "model/base/text.h"
#include "model/ir/name_reader.h"
#include "model/machine/machine_fields.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// A path of the file, as seen from where the program runs.
std::string Resolved(const fs::path& folder, const std::string& path) {
  return (folder / path).lexically_normal().string();
}

bool IsBareName(const std::string& text) {
  return text.find_first_of("/.") == std::string::npos;
}

/// Names of workloads may have dots.
std::string WorkloadFolder(const fs::path& folder, const std::string& text) {
  return Resolved(folder, text.find('/') == std::string::npos ? "../../traces/" + text : text);
}

std::string PlanFile(const fs::path& folder, const std::string& text) {
  return Resolved(folder, IsBareName(text) ? "../plans/" + text + ".yaml" : text);
}

std::vector<std::string> ReadPlans(ObjectReader& object, const fs::path& folder) {
  std::vector<std::string> paths;
  const Json* list = object.RequireArray("plans");
  const Path path = object.At("plans");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto text = ReadString((*list)[i], Path(path, i), object.faults())) {
      paths.push_back(PlanFile(folder, *text));
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
    read.workload = WorkloadFolder(folder, read.workload);
  }
  read.plans = ReadPlans(object, folder);
  ReadChanges(object, read);
  object.Optional("name", ReadName, read.name);
  if (!read.changes.empty() && read.name.empty()) {
    faults.Add(path, "key 'name' is missing; a case with changes needs one for its results");
  }
  object.Optional("timelines", ReadBool, read.timelines);
  object.RejectUnknown();
  return read;
}

void ReadSuite(
    const Json& value, const Path& path, Faults& faults, const fs::path& folder, Suite& suite) {
  ObjectReader object(value, path, faults);
  ReadOptionalCount(object, "warmup", suite.warmup);
  ReadOptionalCount(object, "steps", suite.steps);
  if (const Json* cases = object.RequireArray("cases")) {
    const Path here = object.At("cases");
    for (std::size_t i = 0; i < cases->size(); ++i) {
      suite.cases.push_back(ReadCase((*cases)[i], Path(here, i), faults, folder));
    }
  }
  object.RejectUnknown();
}

/// The suite called `name`; every other one is read for its faults, too.
void ReadSuites(ObjectReader& object,
                const fs::path& folder,
                const std::string& name,
                Suite& suite) {
  const Json* suites = object.Require("suites");
  const Path path = object.At("suites");
  if (suites == nullptr) {
    return;
  }
  if (!suites->is_object()) {
    object.faults().Add(path, "expected names of suites and what each measures");
    return;
  }
  std::vector<std::string_view> names;
  for (const auto& [key, value] : suites->items()) {
    names.push_back(key);
    Suite other;
    ReadSuite(value, Path(path, key), object.faults(), folder, key == name ? suite : other);
  }
  if (!suites->contains(name)) {
    const std::string problem = name.empty()
                                    ? "expected FILE:NAME"
                                    : "has no suite '" + name + "'" + DidYouMean(name, names);
    object.faults().Add(path, problem + "; its names are " + JoinAlternatives(names));
  }
}

}  // namespace

Suite LoadSuite(const std::string& file_and_name) {
  const std::size_t colon = file_and_name.rfind(':');
  const std::string file = file_and_name.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : file_and_name.substr(colon + 1);
  const YamlDocument document = LoadYaml(file, "suite file");
  const fs::path folder = fs::path(file).parent_path();
  const Locator locate = document.locator();
  RequireFormat(document.json(), "dc-suites/1", locate);
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
  ReadSuites(object, folder, name, suite);
  object.RejectUnknown();
  faults.ThrowIfAny();
  return suite;
}

}  // namespace dcsim
