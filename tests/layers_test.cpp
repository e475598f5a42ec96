// The layers of docs/design/architecture.md, read from the sources: who may include whom, where
// third parties may be seen, and how long a file may be.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_folder.h"

namespace dcsim {
namespace {

using testing::Contains;
using testing::IsEmpty;

namespace fs = std::filesystem;

/// A line of a source file that includes something: "model/ir/graph.h" or <vector>.
struct Include {
  std::string file;  // from the source folder
  std::string target;
  bool quoted = false;
};

bool StartsWithAny(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&text](const std::string& prefix) { return text.starts_with(prefix); });
}

/// Files of the layers with one of the endings, from the source folder, sorted.
std::vector<std::string> SourceFiles(const std::vector<std::string>& endings) {
  std::vector<std::string> files;
  for (const std::string layer : {"model", "sim", "exec", "tools"}) {
    const fs::path folder = fs::path(SourceFolder()) / layer;
    if (!fs::exists(folder)) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string ending = entry.path().extension().string();
      if (entry.is_regular_file() &&
          std::find(endings.begin(), endings.end(), ending) != endings.end()) {
        files.push_back(fs::relative(entry.path(), SourceFolder()).string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> Lines(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream stream(fs::path(SourceFolder()) / file);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::optional<Include> FindInclude(const std::string& file, const std::string& line) {
  const std::string word = "#include ";
  if (!line.starts_with(word) || line.size() < word.size() + 2) {
    return std::nullopt;
  }
  const bool quoted = line[word.size()] == '"';
  const std::size_t start = word.size() + 1;
  const std::size_t end = line.find(quoted ? '"' : '>', start);
  return Include{file, line.substr(start, end - start), quoted};
}

std::vector<Include> AllIncludes() {
  std::vector<Include> includes;
  for (const std::string& file : SourceFiles({".h", ".cpp"})) {
    for (const std::string& line : Lines(file)) {
      if (const auto include = FindInclude(file, line)) {
        includes.push_back(*include);
      }
    }
  }
  return includes;
}

/// Whom each folder may include, besides itself. Where a file lies in several, the longest counts.
const std::map<std::string, std::vector<std::string>>& AllowedFolders() {
  static const std::map<std::string, std::vector<std::string>> allowed = {
      {"model/base/", {}},
      {"model/ir/", {"model/base/"}},
      {"model/graph/", {"model/base/", "model/ir/"}},
      {"model/machine/", {"model/base/", "model/ir/"}},
      {"model/cost/", {"model/base/", "model/ir/", "model/graph/", "model/machine/"}},
      {"model/passes/", {"model/base/", "model/ir/", "model/graph/"}},
      {"sim/memory/", {"model/base/"}},
      {"sim/engine/", {"model/", "sim/memory/"}},
      {"sim/analysis/", {"model/", "sim/memory/", "sim/engine/"}},
      {"sim/search/", {"model/", "sim/"}},
      {"exec/", {"model/"}},
      {"tools/", {"model/", "sim/", "dcsim_version.h"}},
      {"tools/dc_run/",
       {"model/", "sim/", "exec/", "tools/common/", "tools/views/", "dcsim_version.h"}},
  };
  return allowed;
}

/// Whether a file may include a file of the project.
bool MayInclude(const std::string& file, const std::string& target) {
  std::string own;
  for (const auto& [folder, others] : AllowedFolders()) {
    own = file.starts_with(folder) && folder.size() > own.size() ? folder : own;
  }
  return !own.empty() &&
         (target.starts_with(own) || StartsWithAny(target, AllowedFolders().at(own)));
}

/// A third party: how its headers begin, and the places that may include them.
struct ThirdParty {
  std::string name;
  std::vector<std::string> headers;
  std::vector<std::string> places;
};

const std::vector<ThirdParty>& ThirdParties() {
  static const std::vector<ThirdParty> parties = {
      {"torch and CUDA", {"torch/", "ATen/", "c10", "cuda", "nccl", "cupti"}, {"exec/"}},
      {"yaml-cpp", {"yaml-cpp/"}, {"tools/common/yaml_document.cpp"}},
      {"Graphviz", {"graphviz/", "gvc", "cgraph"}, {"tools/views/schedule_dag.cpp"}},
      {"CLI11", {"CLI/"}, {"tools/"}},
      {"Boost", {"boost/graph/"}, {"model/graph/"}},
      {"Boost's version", {"boost/version.hpp"}, {"tools/common/libraries.cpp"}},
      {"other Boost", {"boost/"}, {"model/graph/", "tools/common/libraries.cpp"}},
      {"nlohmann-json", {"nlohmann/"}, {"model/ir/document.h", "tools/common/libraries.cpp"}},
      {"nanobind", {"nanobind/"}, {"tools/python/native/"}},
      {"zlib", {"zlib.h"}, {"tools/common/"}},
      {"liblzma", {"lzma.h"}, {"tools/common/"}},
  };
  return parties;
}

/// Whether a file may include a header that is not the project's.
bool MayIncludeForeign(const std::string& file, const std::string& header) {
  return std::none_of(ThirdParties().begin(), ThirdParties().end(), [&](const ThirdParty& party) {
    return StartsWithAny(header, party.headers) && !StartsWithAny(file, party.places);
  });
}

std::vector<std::string> ForbiddenIncludes() {
  std::vector<std::string> forbidden;
  for (const Include& include : AllIncludes()) {
    const bool allowed = include.quoted ? MayInclude(include.file, include.target)
                                        : MayIncludeForeign(include.file, include.target);
    if (!allowed) {
      forbidden.push_back(include.file + " includes " + include.target);
    }
  }
  return forbidden;
}

// The rules themselves

TEST(LayersTest, ArrowsPointDown) {
  EXPECT_TRUE(MayInclude("sim/engine/a.cpp", "model/ir/schedule.h"));
  EXPECT_FALSE(MayInclude("model/ir/a.cpp", "sim/engine/simulate.h"));
  EXPECT_FALSE(MayInclude("model/passes/a.cpp", "tools/common/file.h"));
  EXPECT_FALSE(MayInclude("sim/analysis/a.cpp", "tools/common/file.h"));
  EXPECT_FALSE(MayInclude("exec/executor/a.cpp", "sim/engine/simulate.h"));
  EXPECT_FALSE(MayInclude("tools/dc_sim/a.cpp", "exec/executor/executor.h"));
  EXPECT_TRUE(MayInclude("tools/dc_run/a.cpp", "exec/executor/executor.h"));
  EXPECT_FALSE(MayInclude("sim/memory/a.cpp", "sim/engine/simulate.h"));
  EXPECT_FALSE(MayInclude("model/ir/a.cpp", "model/passes/lower.h"));
  EXPECT_TRUE(MayInclude("model/cost/a.cpp", "model/machine/gpu.h"));
  EXPECT_FALSE(MayInclude("model/machine/a.cpp", "model/cost/kernel_models.h"));
  EXPECT_FALSE(MayInclude("model/passes/a.cpp", "model/cost/work_cost.h"));
  EXPECT_FALSE(MayInclude("elsewhere/a.cpp", "model/ir/graph.h"));
}

TEST(LayersTest, ThirdPartiesHaveTheirPlaces) {
  EXPECT_TRUE(MayIncludeForeign("model/ir/a.cpp", "vector"));
  EXPECT_FALSE(MayIncludeForeign("sim/engine/a.cpp", "torch/torch.h"));
  EXPECT_FALSE(MayIncludeForeign("tools/dc_run/a.cpp", "cuda_runtime.h"));
  EXPECT_FALSE(MayIncludeForeign("model/ir/a.cpp", "yaml-cpp/yaml.h"));
  EXPECT_FALSE(MayIncludeForeign("tools/views/dag_model.cpp", "graphviz/gvc.h"));
  EXPECT_FALSE(MayIncludeForeign("sim/engine/a.cpp", "boost/graph/topological_sort.hpp"));
  EXPECT_FALSE(MayIncludeForeign("model/graph/a.cpp", "boost/version.hpp"));
}

TEST(LayersTest, IncludesAreSeen) {
  const auto quoted = FindInclude("a.cpp", "#include \"model/ir/graph.h\"");
  ASSERT_TRUE(quoted.has_value());
  EXPECT_EQ(quoted->target, "model/ir/graph.h");
  EXPECT_TRUE(quoted->quoted);
  EXPECT_EQ(FindInclude("a.cpp", "#include <vector>")->target, "vector");
  EXPECT_FALSE(FindInclude("a.cpp", "int include = 1;").has_value());
}

TEST(LayersTest, SourcesAreSeen) {
  const auto files = SourceFiles({".h", ".cpp"});
  EXPECT_THAT(files, Contains("model/ir/graph.h"));
  EXPECT_THAT(files, Contains("sim/engine/simulate.cpp"));
  EXPECT_THAT(files, Contains("tools/dc_sim/main.cpp"));
}

// The sources

TEST(LayersTest, EveryIncludeKeepsTheLayers) {
  EXPECT_THAT(ForbiddenIncludes(), IsEmpty());
}

TEST(LayersTest, OneViewDrawsWithGraphviz) {
  std::vector<std::string> views;
  for (const Include& include : AllIncludes()) {
    if (StartsWithAny(include.target, {"graphviz/", "gvc", "cgraph"})) {
      views.push_back(include.file);
    }
  }
  EXPECT_THAT(views, testing::ElementsAre("tools/views/schedule_dag.cpp"));
}

// Costs ask for a kernel's traits, not for its name: names are in one table.
TEST(LayersTest, CostsNameNoOperator) {
  std::vector<std::string> naming;
  for (const std::string& file : SourceFiles({".h", ".cpp"})) {
    const bool table = file.starts_with("model/cost/operators.");
    for (const std::string& line : Lines(file)) {
      if (file.starts_with("model/cost/") && !table && line.find("\"aten::") != std::string::npos) {
        naming.push_back(std::string(file).append(": ").append(line));
      }
    }
  }
  EXPECT_THAT(naming, IsEmpty());
}

TEST(LayersTest, FilesHaveAtMost400Lines) {
  std::vector<std::string> long_files;
  for (const std::string& file : SourceFiles({".h", ".cpp", ".cu", ".py", ".sh"})) {
    if (const std::size_t lines = Lines(file).size(); lines > 400) {
      long_files.push_back(file + ": " + std::to_string(lines) + " lines");
    }
  }
  EXPECT_THAT(long_files, IsEmpty());
}

// No printing, no environment and no exit below tools. A failed check reports itself and aborts;
// exec/launch is there to find a rank's place in what torchrun or srun have set.
TEST(LayersTest, LibrariesNeitherPrintNorReadTheEnvironment) {
  std::vector<std::string> found;
  for (const std::string& file : SourceFiles({".h", ".cpp"})) {
    if (StartsWithAny(file, {"tools/", "exec/launch/", "model/base/error.cpp"})) {
      continue;
    }
    for (const std::string& line : Lines(file)) {
      for (const std::string call : {"std::cout", "std::cerr", "std::clog", " printf(", "fprintf(",
                                     "getenv(", "std::exit("}) {
        if (line.find(call) != std::string::npos) {
          found.push_back(std::string(file).append(": ").append(line));
        }
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace dcsim
