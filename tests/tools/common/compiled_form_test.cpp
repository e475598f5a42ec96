#include "tools/common/compiled_form.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/tiny_graphs.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"
#include "tools/common/step_options.h"

namespace dcsim {
namespace {

const std::string tiny_llama = DCSIM_SOURCE_DIR "/traces/tiny-llama";

std::string WritePlan(const TemporaryFolder& folder, const std::string& text) {
  std::string path = folder / "plan.yaml";
  WriteFile(path, text);
  return path;
}

TEST(CompiledFormTest, PlanFilesOfAnyFormAreAsked) {
  const TemporaryFolder folder;
  const std::string spec = "format: dc-plan-spec/1\npolicy: plain-1\nstage: 2\n";
  AskedForm form = FindForm(WritePlan(folder, spec), {});
  EXPECT_EQ(form.backend, Backend::kAten);
  EXPECT_EQ(form.stage, 2);
  form = FindForm(WritePlan(folder, spec + "backend: inductor\n"), {ParseOverride("stage=3")});
  EXPECT_EQ(form.backend, Backend::kInductor);
  EXPECT_EQ(form.stage, 3);
  form = FindForm(WritePlan(folder, R"({"zero_optimization": {"stage": 1}, "bf16": {}})"),
                  {ParseOverride("backend=inductor")});
  EXPECT_EQ(form.backend, Backend::kInductor);
  EXPECT_EQ(form.stage, 1);
}

TEST(CompiledFormTest, StagesHaveTheirOwnForms) {
  const auto stages = [](int stage) {
    return TakeForm({LoadWorkload(tiny_llama), std::nullopt}, {Backend::kInductor, stage})
        .workload.graph.compiled->stages;
  };
  EXPECT_EQ(stages(3), std::vector<int>{3});
  EXPECT_EQ(stages(1), (std::vector<int>{1, 2}));
  EXPECT_EQ(stages(2), (std::vector<int>{1, 2}));
  EXPECT_FALSE(TakeForm({LoadWorkload(tiny_llama), std::nullopt}, {}).workload.graph.compiled);
}

TEST(CompiledFormTest, MissingFormIsSaid) {
  const TemporaryFolder folder;
  const std::string path = folder / "two-layers";
  std::filesystem::create_directory(path);
  WriteFile(path + "/graph.json.gz", PrintGraph(TwoLayers()));
  const auto take = [&] { TakeForm({LoadWorkload(path), std::nullopt}, {Backend::kInductor, 3}); };
  EXPECT_EQ(ErrorText(take), path +
                                 ": holds no graph-inductor-zero3.json.gz, which backend inductor "
                                 "needs; record it with the command of its README.md and "
                                 "--backend inductor");
  WriteFile(path + "/graph-inductor-zero3.json.gz", PrintGraph(CompiledGraph()));
  EXPECT_EQ(ErrorText(take), path +
                                 "/graph-inductor-zero3.json.gz: expected a compiled form of the "
                                 "graph beside it, with the same name, options, tokens and "
                                 "parameters; record both again");
}

/// A workload on two H200s by plain-1, lowered and verified.
LoadedStep Loaded(const std::string& workload, int stage, const std::string& backend) {
  StepOptions options;
  options.workload = workload;
  options.cluster = DCSIM_SOURCE_DIR "/configs/clusters/h200-2.yaml";
  options.plan = DCSIM_SOURCE_DIR "/configs/plans/zero3.yaml";
  options.overrides = {"stage=" + std::to_string(stage), "backend=" + backend};
  return LoadStep(options);
}

Result Predicted(int stage, const std::string& backend) {
  const LoadedStep step = Loaded(tiny_llama, stage, backend);
  const Schedule schedule = LowerStep(step);
  return Predict(schedule, step.plan, step.inputs(), /*keep_timeline=*/false).result;
}

TEST(CompiledFormTest, FewerKernelsTakeLessTime) {
  for (const int stage : {1, 2, 3}) {
    const Result compiled = Predicted(stage, "inductor");
    const Result operators = Predicted(stage, "aten");
    EXPECT_EQ(compiled.outcome, "completed");
    EXPECT_EQ(compiled.plan.value("backend", ""), "inductor");
    EXPECT_LT(compiled.step_time, operators.step_time) << stage;
    EXPECT_LT(compiled.compute, operators.compute) << stage;
  }
}

TEST(CompiledFormTest, CommittedFormsCanBeSimulated) {
  for (const char* name : {"llama-3.2-1b", "llama-3.2-1b-cudnn", "qwen3-8b", "qwen3-8b-cudnn"}) {
    for (const int stage : {1, 3}) {
      const LoadedStep step =
          Loaded(std::string(DCSIM_SOURCE_DIR "/traces/") + name, stage, "inductor");
      EXPECT_FALSE(step.profile->ops.empty()) << name;
    }
  }
}

}  // namespace
}  // namespace dcsim
