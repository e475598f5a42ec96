// Files that are nearly right: each is read, or refused with a message. A seed names each mutation.

#include <cstdlib>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/ir/collective_record.h"
#include "model/ir/graph_reader.h"
#include "model/ir/plan_reader.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/support/json_mutation.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// Whether a call refused its input. Anything but an Error, and an Error without a message, fails
/// the test.
bool Refuses(const std::function<void()>& call, const std::string& what) {
  try {
    call();
    return false;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "") << what;
    return true;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
    return true;
  }
}

constexpr int kSeeds = 300;

TEST(MutationTest, RecordingsOfCollectivesAreReadOrRefused) {
  const TemporaryFolder folder;
  const Graph graph = WorkloadGraph("tiny-llama");
  const Plan plan = Resolve(PlanSpec(), graph, 2);
  const Json record =
      PrintCollectiveRecord(Lower(plan, graph, nullptr, {}), PrintPlan(plan, graph), graph);
  int refused = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const std::string text =
        seed % 4 == 0 ? MutateText(record.dump(), random) : MutateJson(record, random).dump();
    WriteFile(folder / "record.json", text);
    const auto load = [&] { LoadPlan(folder / "record.json", {}, graph, 2); };
    refused += Refuses(load, "seed " + std::to_string(seed)) ? 1 : 0;
  }
  EXPECT_GT(refused, kSeeds * 9 / 10);
}

// What is not changed in a header is.
TEST(MutationTest, GraphsAreReadOrRefused) {
  const Json graph = Json::parse(WorkloadText("tiny-llama"));
  int refused = 0;
  for (int seed = 0; seed < kSeeds / 3; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    Json changed = graph;
    for (const char* key : {"options", "recorder", "tokens", "name", "inputs"}) {
      changed[key] = Below(random, 2) == 0 ? MutateJson(changed[key], random) : changed[key];
    }
    const auto read = [&] { ParseGraph(changed.dump(), "graph.json"); };
    refused += Refuses(read, "seed " + std::to_string(seed)) ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
}

/// The exit code of make-cluster, whose messages go to a file.
int MakeCluster(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string command = "'" DCSIM_BIN_DIR "/make-cluster' make " + arguments + " --out '" +
                              (folder / "made.yaml") + "' 2>'" + (folder / "stderr") + "'";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Line(int world, std::int64_t bytes, double us) {
  return Json{{"world", world},
              {"bytes", bytes},
              {"all_gather_us", us},
              {"reduce_scatter_us", us},
              {"all_reduce_us", us * 2}}
      .dump();
}

/// Small calls take what the host does, large ones longer.
std::vector<std::string> CurveLines() {
  std::vector<std::string> lines;
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes *= 4) {
    lines.push_back(Line(2, bytes, 20 + static_cast<double>(bytes) / 1e5));
  }
  return lines;
}

TEST(MutationTest, LinesOfCurvesAreReadOrRefused) {
  const TemporaryFolder folder;
  const std::string base = SourceFolder() + "/configs/measured/h200-8.base.yaml";
  std::string base_text = ReadFile(base);
  const std::string gpu = "../gpus/";
  base_text.replace(base_text.find(gpu), gpu.size(), SourceFolder() + "/configs/gpus/");
  WriteFile(folder / "base.yaml", base_text);
  const std::string arguments = "--base '" + (folder / "base.yaml") + "' --curves '" +
                                (folder / "curves.jsonl") + "' --ranks 2";
  const std::vector<std::string> lines = CurveLines();
  int refused = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::vector<std::string> changed = lines;
    std::string& line = changed[Below(random, changed.size())];
    line = seed == 0       ? line
           : seed == 1     ? "[]"
           : seed % 4 == 0 ? MutateText(line, random)
                           : MutateJson(Json::parse(line), random).dump();
    WriteFile(folder / "curves.jsonl", Join(changed, "\n"));
    const int code = MakeCluster(folder, arguments);
    EXPECT_TRUE(code == 0 || code == 2) << "seed " << seed << ": " << code << " for " << line;
    EXPECT_EQ(code == 2, !ReadFile(folder / "stderr").empty()) << "seed " << seed;
    EXPECT_TRUE(seed != 0 || code == 0);
    refused += code == 2 ? 1 : 0;
    if (code == 0) {
      EXPECT_EQ(LoadCluster(folder / "made.yaml").gpus_per_node, 8) << "seed " << seed;
    }
  }
  EXPECT_GT(refused, kSeeds / 2);
}

TEST(MutationTest, BaseThatIsNoClusterIsRefused) {
  const TemporaryFolder folder;
  WriteFile(folder / "curves.jsonl", Join(CurveLines(), "\n"));
  WriteFile(folder / "base.yaml", "format: dc-plan-spec/1\nstage: 3\n");
  EXPECT_EQ(MakeCluster(folder, "--base '" + (folder / "base.yaml") + "' --curves '" +
                                    (folder / "curves.jsonl") + "' --ranks 2"),
            2);
}

}  // namespace
}  // namespace dcsim
