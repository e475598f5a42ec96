#include "tests/support/workloads.h"

#include <algorithm>
#include <filesystem>

#include "model/ir/graph_reader.h"
#include "tests/support/source_folder.h"
#include "tools/common/compiled_form.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

std::string ProfilePath(const std::string& name) {
  return SourceFolder() + "/traces/" + name + "/profile-h200.json.xz";
}

}  // namespace

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SourceFolder() + "/traces")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ProfiledWorkloadNames() {
  std::vector<std::string> names = WorkloadNames();
  std::erase_if(
      names, [](const std::string& name) { return !std::filesystem::exists(ProfilePath(name)); });
  return names;
}

std::string WorkloadText(const std::string& name) {
  return ReadFile(SourceFolder() + "/traces/" + name + "/graph.json.xz");
}

std::string WorkloadProfileText(const std::string& name) {
  return ReadFile(ProfilePath(name));
}

Graph WorkloadGraph(const std::string& name) {
  return ParseGraph(WorkloadText(name), name);
}

Graph CompiledWorkloadGraph(const std::string& name, int stage) {
  const std::string file = FormFile(SourceFolder() + "/traces/" + name, stage);
  return ParseGraph(ReadFile(file), file);
}

Graph TrainingGraph(const std::string& name) {
  const std::string file = SourceFolder() + "/tests/data/training/" + name + "/graph.json.xz";
  return ParseGraph(ReadFile(file), file);
}

}  // namespace dcsim
