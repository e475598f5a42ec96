// A row of a sweep is what dc-sim simulate says with its options, to the byte: of options that a
// seed draws.

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/json_mutation.h"
#include "tests/support/source_folder.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

const std::string kSource = SourceFolder();

/// Keys with some of their values, and how simulate is told them.
struct Key {
  std::string name;
  std::vector<std::string> values;
  std::string option;  // before the value
};

std::vector<Key> Keys() {
  return {{"stage", {"1", "2", "3"}, "--set stage="},
          {"gpus", {"1", "2", "3", "4"}, "--gpus "},
          {"batch", {"8", "16"}, "--batch "},
          {"gradient_accumulation_steps", {"1", "2", "5"}, "--set gradient_accumulation_steps="},
          {"allocator", {"default", "expandable_segments"}, "--set allocator="},
          {"cluster.gpu.memory", {"2500 MB", "4 GB", "80 GB"}, "--cluster-set gpu.memory="},
          {"cluster", {"h200-8", "h100-4"}, "--cluster "},
          {"plan", {"zero3-deepcompile", "zero3-eager", "zero3"}, "--plan "}};
}

int RunProgram(const std::string& arguments) {
  const std::string command =
      "cd '" + kSource + "' && '" DCSIM_BIN_DIR "/dc-sim' " + arguments + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// One or two values of each key, the last of which change fastest.
std::vector<std::pair<Key, std::vector<std::string>>> Draw(std::mt19937_64& random) {
  std::vector<std::pair<Key, std::vector<std::string>>> drawn;
  int doubled = 0;
  for (Key& key : Keys()) {
    std::shuffle(key.values.begin(), key.values.end(), random);
    std::vector<std::string> values = key.values;
    const bool two = doubled < 3 && Below(random, 2) == 0;
    values.resize(two ? 2 : 1);
    doubled += two ? 1 : 0;
    drawn.emplace_back(std::move(key), std::move(values));
  }
  return drawn;
}

std::string SweepArguments(const std::vector<std::pair<Key, std::vector<std::string>>>& drawn) {
  std::string arguments = "sweep tests/data/sizes/mlp-2x64";
  for (const auto& [key, values] : drawn) {
    std::string list;
    for (const std::string& value : values) {
      list += (list.empty() ? "" : ",") + value;
      arguments += key.name == "plan" ? " --plan " + value : "";
    }
    arguments += key.name == "plan" ? "" : " --vary '" + key.name + "=" + list + "'";
  }
  return arguments;
}

std::string SimulateArguments(const std::vector<std::pair<Key, std::vector<std::string>>>& drawn,
                              const Json& values) {
  std::string arguments = "simulate tests/data/sizes/mlp-2x64";
  for (const auto& [key, given] : drawn) {
    const std::string value = values.value(key.name, given.front());
    const bool joined = key.option.ends_with("=");
    arguments += joined ? " " + key.option + "'" + value + "'" : " " + key.option + value;
  }
  return arguments;
}

TEST(SweepRowsTest, RowIsWhatSimulateSays) {
  const TemporaryFolder folder;
  constexpr int kSeeds = 6;
  int rows = 0;
  int stopped = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto drawn = Draw(random);
    const std::string sweep = SweepArguments(drawn);
    const int one = RunProgram(sweep + " --threads 1 --json " + (folder / "one.json"));
    const int many = RunProgram(sweep + " --threads 7 --json " + (folder / "many.json"));
    ASSERT_EQ(one, many) << sweep;
    ASSERT_NE(one, 2) << sweep;
    EXPECT_EQ(ReadFile(folder / "one.json"), ReadFile(folder / "many.json")) << sweep;
    const Json report = Json::parse(ReadFile(folder / "one.json"));
    for (const Json& row : report["rows"]) {
      const std::string simulate = SimulateArguments(drawn, row["values"]);
      stopped += RunProgram(simulate + " --json " + (folder / "step.json")) == 1 ? 1 : 0;
      Json step = Json::parse(ReadFile(folder / "step.json"));
      EXPECT_EQ(step.erase("versions"), 1U);  // of rows the sweep says it once
      EXPECT_EQ(row["result"], step) << simulate;
      ++rows;
    }
  }
  EXPECT_GT(rows, 2 * kSeeds);
  EXPECT_GT(stopped, 0);
  EXPECT_LT(stopped, rows);
}

}  // namespace
}  // namespace dcsim
