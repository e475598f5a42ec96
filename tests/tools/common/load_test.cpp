#include "tools/common/load.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "model/ir/plan_reader.h"
#include "model/ir/profile_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/source_folder.h"
#include "tests/support/tiny_graphs.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/config_path.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

constexpr char kSpec[] = "format: dc-plan-spec/1\npolicy: plain-1\nstage: 3\n";

/// A folder "models" with the workload "two-layers" in it.
struct Models {
  Models() {
    fs::create_directory(path());
    fs::create_directory(path() + "/two-layers");
    WriteFile(path() + "/two-layers/graph.json.xz", PrintGraph(TwoLayers()));
  }
  std::string path() const { return folder / "models"; }
  std::string workload() const { return path() + "/two-layers"; }

  TemporaryFolder folder;
};

// Workloads

TEST(LoadTest, WorkloadIsItsFolder) {
  const Models models;
  const Workload workload = LoadWorkload(models.workload());
  EXPECT_EQ(workload.folder, models.workload());
  EXPECT_EQ(workload.graph.name, "two-layers");
  EXPECT_EQ(workload.graph.hash, TwoLayers().hash);
}

TEST(LoadTest, WorkloadMayBeUncompressed) {
  const Models models;
  fs::remove(models.workload() + "/graph.json.xz");
  WriteFile(models.workload() + "/graph.json", PrintGraph(TwoLayers()));
  EXPECT_EQ(LoadWorkload(models.workload()).graph.hash, TwoLayers().hash);
}

TEST(LoadTest, MissingWorkloadNamesTheNearestFolder) {
  const Models models;
  const std::string asked = models.path() + "/two-layer";
  EXPECT_EQ(ErrorText([&] { LoadWorkload(asked); }),
            asked + ": no such workload folder, did you mean 'two-layers'?");
}

TEST(LoadTest, SlashAtTheEndDoesNotHideTheNearestFolder) {
  const Models models;
  const std::string asked = models.path() + "/two-layer/";
  EXPECT_EQ(ErrorText([&] { LoadWorkload(asked); }),
            asked + ": no such workload folder, did you mean 'two-layers'?");
}

TEST(LoadTest, MissingWorkloadWithoutANearNameSaysSo) {
  const Models models;
  const std::string asked = models.path() + "/something-else";
  EXPECT_EQ(ErrorText([&] { LoadWorkload(asked); }), asked + ": no such workload folder");
}

TEST(LoadTest, FileIsNoWorkload) {
  const Models models;
  const std::string asked = models.workload() + "/graph.json.xz";
  EXPECT_EQ(ErrorText([&] { LoadWorkload(asked); }),
            asked + ": expected a workload folder, found a file");
}

TEST(LoadTest, FolderWithoutGraphSaysHowToRecordOne) {
  const Models models;
  EXPECT_EQ(ErrorText([&] { LoadWorkload(models.path()); }),
            models.path() + ": holds no graph.json.xz; record one with python -m dcrecord");
}

TEST(LoadTest, BrokenGraphIsNamed) {
  const Models models;
  const std::string file = models.workload() + "/graph.json.xz";
  WriteFile(file, "{");
  EXPECT_TRUE(ErrorText([&] { LoadWorkload(models.workload()); }).starts_with(file + ":1:"));
}

// Profiles

TEST(LoadTest, ProfileIsNamedAfterItsGpu) {
  const Graph graph = TwoLayers();
  EXPECT_EQ(ProfileFileName("NVIDIA H200", graph), "profile-h200.json.xz");
  EXPECT_EQ(ProfileFileName("NVIDIA A100-SXM4 80GB", graph), "profile-a100-sxm4-80gb.json.xz");
}

TEST(LoadTest, ProfileOfACompiledFormIsNamedAfterIt) {
  Graph graph = CompiledGraph();
  const auto name_for = [&](std::vector<int> stages) {
    graph.compiled->stages = std::move(stages);
    return ProfileFileName("NVIDIA H200", graph);
  };
  EXPECT_EQ(name_for({3}), "profile-h200-inductor-zero3.json.xz");
  EXPECT_EQ(name_for({1, 2}), "profile-h200-inductor-zero12.json.xz");
  EXPECT_EQ(name_for({}), "profile-h200-inductor-layers.json.xz");
}

TEST(LoadTest, WorkloadWithoutProfileHasNone) {
  const Models models;
  EXPECT_FALSE(FindProfile(LoadWorkload(models.workload()), "NVIDIA H200").has_value());
}

Profile ProfileOf(std::uint64_t graph_hash) {
  Profile profile;
  profile.graph_hash = graph_hash;
  profile.gpu = "NVIDIA H200";
  profile.steps = 7;
  return profile;
}

TEST(LoadTest, ProfileOfTheGpuIsFound) {
  const Models models;
  WriteFile(models.workload() + "/profile-h200.json.xz", PrintProfile(ProfileOf(TwoLayers().hash)));
  const Workload workload = LoadWorkload(models.workload());
  const auto profile = FindProfile(workload, "NVIDIA H200");
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->steps, 7);
  EXPECT_FALSE(FindProfile(workload, "NVIDIA H100").has_value());
}

TEST(LoadTest, ProfileOfAnotherGraphIsAnError) {
  const Models models;
  const std::string file = models.workload() + "/profile-h200.json.xz";
  WriteFile(file, PrintProfile(ProfileOf(1)));
  const Workload workload = LoadWorkload(models.workload());
  const std::string error = ErrorText([&] { FindProfile(workload, "NVIDIA H200"); });
  EXPECT_TRUE(error.starts_with(
      file + ": /graph: the profile is of graph 0000000000000001, the workload's is "))
      << error;
}

// Clusters

std::string ClusterFile(const std::string& name) {
  return SourceFolder() + "/configs/clusters/" + name;
}

TEST(LoadTest, ClusterTakesItsGpuFromAFileBesideIt) {
  const Cluster cluster = LoadCluster(ClusterFile("h200-8.yaml"));
  EXPECT_EQ(cluster.gpus(), 8);
  EXPECT_EQ(cluster.gpu.name, "NVIDIA H200");
  EXPECT_EQ(cluster.document["gpu"]["name"], "NVIDIA H200");
}

TEST(LoadTest, MissingClusterNamesTheNearestFile) {
  EXPECT_EQ(ErrorText([] { LoadCluster(ClusterFile("h200-9.yaml")); }),
            ClusterFile("h200-9.yaml") + ": no such cluster file, did you mean 'h200-8.yaml'?");
}

// One digit more or less says nothing of how near two machines are; of names without numbers in
// common the fewest edits decide.
TEST(LoadTest, NearestNumberIsTheNearestName) {
  const auto hint = [](const std::string& name) { return DidYouMeanFile(ClusterFile(name)); };
  EXPECT_EQ(hint("h200-16.yaml"), ", did you mean 'h200-8.yaml'?");
  EXPECT_EQ(hint("h200-16"), ", did you mean 'h200-8.yaml'?");
  EXPECT_EQ(hint("h200-3.yaml"), ", did you mean 'h200-4.yaml'?");
  EXPECT_EQ(hint("h200_8.yaml"), ", did you mean 'h200-8.yaml'?");
  EXPECT_EQ(hint("something-else.yaml"), "");
}

TEST(LoadTest, BareNameMeansTheCommittedFile) {
  EXPECT_EQ(LoadCluster("h200-4").name, "h200-4");
  EXPECT_EQ(LoadPlan("zero2-deepcompile", {}, TwoLayers(), 2).options.stage, 2);
  EXPECT_EQ(ErrorText([] { LoadCluster("h200-16"); }),
            "h200-16: no such cluster file, did you mean 'h200-8.yaml'?");
  EXPECT_EQ(ErrorText([] { LoadCluster("h200-4.yaml"); }), "h200-4.yaml: no such cluster file");
}

TEST(LoadTest, OverrideNamesAnotherGpuFile) {
  const std::string file = ClusterFile("h200-8.yaml");
  const Cluster cluster = LoadCluster(file, {{"gpu.memory", "40 GB", "--cluster-set"},
                                             {"gpu", "../gpus/h100.yaml", "--cluster-set"}});
  EXPECT_EQ(cluster.gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(cluster.gpu.memory, Bytes(40'000'000'000)) << "of the other GPU";
  const std::string error = ErrorText([&] {
    LoadCluster(file, {{"gpu", "../gpus/h10.yaml", "--cluster-set"}});
  });
  EXPECT_TRUE(error.starts_with("--cluster-set gpu=../gpus/h10.yaml: gpu: no such file ")) << error;
  EXPECT_TRUE(error.ends_with("did you mean 'h100.yaml'?")) << error;
}

TEST(LoadTest, GpuFileIsReadAlone) {
  const std::string folder = SourceFolder() + "/configs/clusters";
  EXPECT_EQ(LoadGpu("../gpus/h200.yaml", folder, "--gpu").name, "NVIDIA H200");
  EXPECT_EQ(LoadGpu("h200", folder, "--gpu").name, "NVIDIA H200");
  const std::string missing = ErrorText([&] { LoadGpu("../gpus/h10.yaml", folder, "--gpu"); });
  EXPECT_TRUE(missing.starts_with("--gpu: no such file ")) << missing;
  const TemporaryFolder own;
  WriteFile(own / "own.yaml", "format: dc-gpu/1\nname: 5\n");
  const std::string broken = ErrorText([&] { LoadGpu("own.yaml", own.path(), "--gpu"); });
  EXPECT_TRUE(broken.starts_with(own / "own.yaml:2:")) << broken;
}

/// A copy of the H200 cluster with one text replaced, and its GPU file beside it.
struct EditedCluster {
  EditedCluster(const std::string& edited, const std::string& from, const std::string& to) {
    for (const std::string name : {"clusters/h200-8.yaml", "gpus/h200.yaml"}) {
      fs::create_directories(fs::path(folder / name).parent_path());
      std::string text = ReadFile(SourceFolder() + "/configs/" + name);
      if (name == edited) {
        text.replace(text.find(from), from.size(), to);
      }
      WriteFile(folder / name, text);
    }
  }
  std::string file() const { return folder / "clusters/h200-8.yaml"; }
  std::string Error() const {
    return ErrorText([this] { LoadCluster(file()); });
  }

  TemporaryFolder folder;
};

// Whoever writes a cluster file of their own names one of these.
TEST(LoadTest, EveryGpuFileIsRead) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(SourceFolder() + "/configs/gpus")) {
    const TemporaryFolder folder;
    std::string text = ReadFile(ClusterFile("h200-8.yaml"));
    const std::string from = "../gpus/h200.yaml";
    text.replace(text.find(from), from.size(), entry.path().string());
    WriteFile(folder / "own.yaml", text);
    EXPECT_NE(LoadCluster(folder / "own.yaml").gpu.kernels, nullptr) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 4);
}

// The GPU stands in the sixth line of the cluster, behind "# Made by", format, name, nodes and
// gpus_per_node.
TEST(LoadTest, MissingGpuFileIsLocated) {
  const EditedCluster cluster("clusters/h200-8.yaml", "gpus/h200.yaml", "gpus/h300.yaml");
  EXPECT_EQ(cluster.Error(), cluster.file() + ":6:1: gpu: no such file " + cluster.folder.path() +
                                 "/clusters/../gpus/h300.yaml, did you mean 'h200.yaml'?");
}

TEST(LoadTest, GpuFileOfTheProgramIsFoundByItsName) {
  const EditedCluster cluster("clusters/h200-8.yaml", "../gpus/h200.yaml", "b200");
  EXPECT_EQ(LoadCluster(cluster.file()).gpu.name, "NVIDIA B200");
}

TEST(LoadTest, MissingGpuNameIsLocated) {
  const EditedCluster cluster("clusters/h200-8.yaml", "../gpus/h200.yaml", "h300");
  EXPECT_EQ(cluster.Error(),
            cluster.file() + ":6:1: gpu: h300: no such GPU file, did you mean 'h200.yaml'?");
}

TEST(LoadTest, FaultInTheGpuFileIsLocatedThere) {
  const EditedCluster cluster("gpus/h200.yaml", "name: NVIDIA H200", "nome: NVIDIA H200");
  const std::string place = cluster.folder.path() + "/clusters/../gpus/h200.yaml:";
  EXPECT_NE(cluster.Error().find(place + "2:1: gpu/nome: unknown key 'nome', did you mean 'name'?"),
            std::string::npos)
      << cluster.Error();
}

TEST(LoadTest, FaultInTheClusterFileIsLocatedThere) {
  const EditedCluster cluster("clusters/h200-8.yaml", "launch: 4.9 us", "launch: 4.9");
  EXPECT_NE(cluster.Error().find("host/launch: expected a time with a unit such as \"4.9 us\""),
            std::string::npos)
      << cluster.Error();
}

TEST(LoadTest, ClusterMustBeAMap) {
  const TemporaryFolder folder;
  WriteFile(folder / "c.yaml", "- 1\n");
  EXPECT_TRUE(ErrorText([&] { LoadCluster(folder / "c.yaml"); }).starts_with(folder / "c.yaml"));
}

// Plans

TEST(LoadTest, OverrideIsSplitAtTheFirstEqualsSign) {
  const Override split = ParseOverride("a.b=c=d");
  EXPECT_EQ(split.key, "a.b");
  EXPECT_EQ(split.value, "c=d");
}

TEST(LoadTest, OverrideWithoutKeyOrValueIsAnError) {
  EXPECT_EQ(ErrorText([] { ParseOverride("stage"); }),
            "--set stage: expected key=value, such as stage=2");
  EXPECT_EQ(ErrorText([] { ParseOverride("=2"); }),
            "--set =2: expected key=value, such as stage=2");
}

Plan Load(const std::string& text, const std::vector<Override>& overrides = {}, int ranks = 2) {
  const TemporaryFolder folder;
  WriteFile(folder / "plan.yaml", text);
  return LoadPlan(folder / "plan.yaml", overrides, TwoLayers(), ranks);
}

/// The message without the folder of the file.
std::string LoadError(const std::string& text,
                      const std::vector<Override>& overrides = {},
                      int ranks = 2) {
  const std::string error = ErrorText([&] { Load(text, overrides, ranks); });
  const std::size_t at = error.find("plan.yaml");
  return at == std::string::npos ? error : error.substr(at);
}

TEST(LoadTest, SpecIsResolved) {
  const Plan plan = Load(kSpec);
  EXPECT_EQ(plan.options.stage, 3);
  EXPECT_EQ(plan.ranks, 2);
  EXPECT_EQ(plan.graphs.size(), 2U);
}

TEST(LoadTest, OverrideChangesAField) {
  EXPECT_EQ(Load(kSpec, {{"stage", "2"}}).options.stage, 2);
}

TEST(LoadTest, LastOverrideOfAFieldCounts) {
  EXPECT_EQ(Load(kSpec, {{"stage", "2"}, {"stage", "1"}}).options.stage, 1);
}

TEST(LoadTest, FaultOfAnOverrideNamesIt) {
  EXPECT_EQ(LoadError(kSpec, {{"stage", "4"}}),
            "--set stage=4: stage: expected a whole number from 1 to 3, found 4");
}

TEST(LoadTest, FaultOfASpecIsLocated) {
  EXPECT_EQ(LoadError("format: dc-plan-spec/1\npolicy: plain-1\nstgae: 3\nstage: 3\n"),
            "plan.yaml:3:1: stgae: unknown key 'stgae', did you mean 'stage'?");
}

std::string PlanText() {
  return PrintPlan(Load(kSpec), TwoLayers()).dump(1);
}

TEST(LoadTest, PlanIsTakenAsItIs) {
  EXPECT_EQ(Load(PlanText()), Load(kSpec));
}

TEST(LoadTest, PlanCannotBeOverridden) {
  const std::string error = LoadError(PlanText(), {{"stage", "2"}});
  EXPECT_EQ(error, "plan.yaml is a plan with every decision made; only a plan spec can be changed");
}

TEST(LoadTest, PlanForOtherRanksIsAnError) {
  EXPECT_EQ(LoadError(PlanText(), {}, 4),
            "plan.yaml: the plan is for 2 ranks, asked for 4; use --gpus 2");
}

TEST(LoadTest, PlanThatDoesNotFitTheGraphIsAnError) {
  std::string text = PlanText();
  const std::string gathered = "\"position\": 0";
  text.replace(text.find(gathered), gathered.size(), "\"position\": 1");
  EXPECT_EQ(LoadError(text), "plan.yaml: gather of w1 after its first use");
}

TEST(LoadTest, MissingPlanNamesTheNearestFile) {
  const std::string asked = SourceFolder() + "/configs/plans/zero4.yaml";
  EXPECT_EQ(ErrorText([&] { LoadPlan(asked, {}, TwoLayers(), 2); }),
            asked + ": no such plan file, did you mean 'zero3.yaml'?");
}

TEST(LoadTest, ATextIsThePlanItself) {
  const Plan plan =
      LoadPlan("{format: dc-plan-spec/1, policy: plain-1, stage: 2}", {}, TwoLayers(), 2);
  EXPECT_EQ(plan.options.stage, 2);
}

TEST(LoadTest, FaultsOfATextNameTheField) {
  EXPECT_EQ(ErrorText([] {
              LoadPlan("{format: dc-plan-spec/1, policy: plain-1, stage: 4}", {}, TwoLayers(), 2);
            }),
            "plan: stage: expected a whole number from 1 to 3, found 4");
  EXPECT_THAT(ErrorText([] { LoadCluster("{format: dc-cluster/1}"); }),
              testing::StartsWith("cluster: "));
  EXPECT_THAT(ErrorText([] { LoadSpace("{format: dc-space/1, options: {stag: 1}}"); }),
              testing::StartsWith("space: options/stag: "));
}

}  // namespace
}  // namespace dcsim
