#include "tools/common/measured_results.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/result_reader.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

constexpr std::string_view kPack = ".jsonl.xz";

bool IsResult(const std::string& name) {
  return (name.ends_with(".json") || name.ends_with(".json.gz")) &&
         name.find("timeline.json") == std::string::npos;
}

/// Result files and packs of a folder, by name. Throws Error for a folder without any.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  if (FileExists(folder + "/graph.json.xz") || FileExists(folder + "/graph.json")) {
    throw Error(folder + ": a recorded workload, expected results measured of it, such as " +
                (std::filesystem::path(folder) / "measured" / "CLUSTER.jsonl.xz").string());
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() && (IsResult(name) || name.ends_with(kPack))) {
      files.push_back((std::filesystem::path(folder) / name).string());
    }
  }
  if (files.empty()) {
    throw Error(folder +
                ": holds no result of dc-run (.json or .json.gz) and no pack of results (" +
                std::string(kPack) + ")");
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Name and result of one line of a pack.
std::pair<std::string, Json> ReadLine(std::string_view line, const std::string& place) {
  Json entry = ParseJson(line, place);
  Faults faults(PointerLocator(place));
  const Path root;  // which the reader keeps a reference to
  std::string name;
  ObjectReader object(entry, root, faults);
  object.Required("name", ReadString, name);
  object.Require("result");
  object.RejectUnknown();
  faults.ThrowIfAny();
  return {std::move(name), std::move(entry["result"])};
}

/// Visits the results of a pack, or only the one that is asked for.
void VisitPack(const std::string& pack,
               const std::optional<std::string>& asked,
               const std::function<void(MeasuredDocument)>& visit) {
  const std::string text = ReadFile(pack);
  std::vector<std::string> names;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string place = pack + ":" + std::to_string(names.size() + 1);
    auto [name, result] = ReadLine(std::string_view(text).substr(start, end - start), place);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw Error(std::string(place)
                      .append(": /name: '")
                      .append(name)
                      .append("' is the name of an earlier line, too"));
    }
    if (!asked || name == *asked) {
      visit({std::string(pack).append(":").append(name), std::move(result)});
    }
    names.push_back(std::move(name));
    start = end + 1;
  }
  if (names.empty()) {
    throw Error(pack + ": holds no result");
  }
  if (asked && std::find(names.begin(), names.end(), *asked) == names.end()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw Error(pack + ": holds no result '" + *asked + "'" + DidYouMean(*asked, known));
  }
}

}  // namespace

Result ReadMeasured(const MeasuredDocument& measured) {
  const Locator locate = PointerLocator(measured.source);
  Result result = ReadResult(measured.document, locate);
  if (result.origin != Origin::kMeasured) {
    throw Error(locate("/origin") + ": expected a measured result, found a predicted one");
  }
  return result;
}

void ForEachMeasured(const std::string& path, const std::function<void(MeasuredDocument)>& visit) {
  if (IsDirectory(path)) {
    for (const std::string& file : FilesIn(path)) {
      ForEachMeasured(file, visit);
    }
    return;
  }
  const std::size_t found = path.find(std::string(kPack) + ":");
  if (path.ends_with(kPack)) {
    VisitPack(path, std::nullopt, visit);
  } else if (found != std::string::npos) {
    const std::size_t colon = found + kPack.size();
    VisitPack(path.substr(0, colon), path.substr(colon + 1), visit);
  } else {
    visit({path, ParseJson(ReadFile(path), path)});
  }
}

}  // namespace dcsim
