#include "tools/common/compiled_form.h"

#include <filesystem>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "model/ir/profile_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/source_folder.h"
#include "tests/support/tiny_graphs.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"
#include "tools/common/step_options.h"

namespace dcsim {
namespace {

const std::string tiny_llama = SourceFolder() + "/traces/tiny-llama";

std::string WritePlan(const TemporaryFolder& folder, const std::string& text) {
  std::string path = folder / "plan.yaml";
  WriteFile(path, text);
  return path;
}

/// What DeepSpeed's JSON is read for.
DeepSpeedJob BfloatJob() {
  static const Graph graph = LoadWorkload(SourceFolder() + "/traces/mlp-8x4096").graph;
  return DeepSpeedJobOf(graph, 2, BatchSizes::kRecording);
}

TEST(CompiledFormTest, PlanFilesOfAnyFormAreAsked) {
  const TemporaryFolder folder;
  const std::string spec = "format: dc-plan-spec/1\npolicy: plain-1\nstage: 2\n";
  const auto form = [&](const std::string& text, const std::string& set) {
    const auto overrides =
        set.empty() ? std::vector<Override>() : std::vector<Override>{ParseOverride(set)};
    return FindForm(WritePlan(folder, text), overrides, BfloatJob());
  };
  EXPECT_EQ(form(spec + "backend: inductor\n", "stage=3"), (AskedForm{Backend::kInductor, 3}));
  EXPECT_EQ(form(spec + "backend: aten\n", ""), (AskedForm{Backend::kAten, 2}));
  EXPECT_EQ(
      form(R"({"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})", "backend=inductor"),
      (AskedForm{Backend::kInductor, 1}));
}

TEST(CompiledFormTest, RecordingDecidesOfWhatRunsCompiled) {
  const TemporaryFolder folder;
  const auto backend = [&](const std::string& text) {
    return FindForm(WritePlan(folder, text), {}, BfloatJob()).backend;
  };
  const auto spec = [&](const std::string& policy) {
    return backend("format: dc-plan-spec/1\nstage: 3\npolicy: " + policy + "\n");
  };
  const auto deepspeed = [&](const std::string& compile) {
    return backend(
        R"({"zero_optimization": {"stage": "3"}, "bf16": {"enabled": true}, "compile": )" +
        compile + "}");
  };
  EXPECT_EQ(spec("plain-1"), std::nullopt);
  EXPECT_EQ(spec("deepcompile-0.19.8"), std::nullopt);
  EXPECT_EQ(spec("deepspeed-eager"), Backend::kAten);
  EXPECT_EQ(spec("deepcompile-0.19.8\noffload_activation: true"), Backend::kAten);
  EXPECT_EQ(spec("deepcompile-0.19.8\npasses: [zero3_compile, offload_activation_floor]"),
            Backend::kAten);
  EXPECT_EQ(deepspeed(R"({"deepcompile": true})"), std::nullopt);
  EXPECT_EQ(deepspeed(R"({"deepcompile": "true"})"), std::nullopt) << "DeepSpeed takes text";
  EXPECT_EQ(deepspeed(R"({"deepcompile": false})"), Backend::kAten);
  // What is decided was decided for operators where it does not say otherwise.
  EXPECT_EQ(backend(R"({"format": "dc-plan/1", "policy": "plain-1", "stage": 3})"), Backend::kAten);
  EXPECT_EQ(backend(R"({"format": "dc-plan/1", "stage": 3, "backend": "inductor"})"),
            Backend::kInductor);
}

TEST(CompiledFormTest, StagesHaveTheirOwnForms) {
  const auto stages = [](int stage) {
    return TakeForm({LoadWorkload(tiny_llama), std::nullopt}, {Backend::kInductor, stage},
                    std::cerr)
        .workload.graph.compiled->stages;
  };
  EXPECT_EQ(stages(3), std::vector<int>{3});
  EXPECT_EQ(stages(1), (std::vector<int>{1, 2}));
  EXPECT_EQ(stages(2), (std::vector<int>{1, 2}));
  EXPECT_FALSE(
      TakeForm({LoadWorkload(tiny_llama), std::nullopt}, {}, std::cerr).workload.graph.compiled);
}

TEST(CompiledFormTest, MissingFormIsSaid) {
  const TemporaryFolder folder;
  const std::string path = folder / "two-layers";
  std::filesystem::create_directory(path);
  WriteFile(path + "/graph.json.xz", PrintGraph(TwoLayers()));
  std::ostringstream notes;
  const auto take = [&](std::optional<Backend> backend) {
    return TakeForm({LoadWorkload(path), std::nullopt}, {backend, 3}, notes);
  };
  const std::string missing = "there is no " + path +
                              "/graph-inductor-zero3.json.xz; recorded by: python -m dcrecord "
                              "lower " +
                              path;
  EXPECT_EQ(ErrorText([&] { take(Backend::kInductor); }), path + ": backend inductor: " + missing);
  EXPECT_EQ(notes.str(), "");
  EXPECT_FALSE(take(std::nullopt).workload.graph.compiled);
  EXPECT_EQ(notes.str(), path + ": backend aten, operator by operator: " + missing + "\n");
  notes.str("");
  TakeForm({LoadWorkload(tiny_llama), std::nullopt}, {Backend::kAten, 3, "a reason"}, notes);
  EXPECT_EQ(notes.str(), tiny_llama + ": backend aten, operator by operator: a reason\n");
  WriteFile(path + "/graph-inductor-zero3.json.xz", PrintGraph(CompiledGraph()));
  EXPECT_EQ(ErrorText([&] { take(std::nullopt); }),
            path +
                "/graph-inductor-zero3.json.xz: expected a compiled form of the "
                "graph beside it, with the same name, options, tokens and "
                "parameters; record both again");
}

TEST(CompiledFormTest, ItsOwnProfileComesBeforeTheBorrowedOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "tiny-llama";
  std::filesystem::create_directory(path);
  for (const char* file : {"/graph.json.xz", "/graph-inductor-zero3.json.xz"}) {
    std::filesystem::copy_file(tiny_llama + file, path + file);
  }
  const auto profile = [&](OpTimes times) {
    return TakeForm(LoadProfiledWorkload(path, "NVIDIA H200", times), {Backend::kInductor, 3},
                    std::cerr)
        .profile;
  };
  EXPECT_FALSE(profile(OpTimes::kProfiled).has_value());
  Profile own;
  own.gpu = "NVIDIA H200";
  own.steps = 7;
  own.graph_hash = LoadWorkload(path).graph.hash;
  WriteFile(path + "/profile-h200.json.xz", PrintProfile(own));
  EXPECT_NE(profile(OpTimes::kProfiled)->borrowed_from, nullptr);
  own.graph_hash = TakeForm({LoadWorkload(path), std::nullopt}, {Backend::kInductor, 3}, std::cerr)
                       .workload.graph.hash;
  own.steps = 8;
  WriteFile(path + "/profile-h200-inductor-zero3.json.xz", PrintProfile(own));
  EXPECT_EQ(profile(OpTimes::kProfiled)->steps, 8);
  EXPECT_EQ(profile(OpTimes::kProfiled)->borrowed_from, nullptr);
  EXPECT_FALSE(profile(OpTimes::kRoofline).has_value());
}

/// A workload on two H200s by plain-1, lowered and verified.
LoadedStep Loaded(const std::string& workload, int stage, const std::string& backend) {
  StepOptions options;
  options.workload = workload;
  options.cluster = SourceFolder() + "/configs/clusters/h200-2.yaml";
  options.plan = SourceFolder() + "/configs/plans/zero3.yaml";
  options.overrides = {"stage=" + std::to_string(stage)};
  if (!backend.empty()) {
    options.overrides.push_back("backend=" + backend);
  }
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
    EXPECT_EQ(operators.plan.value("backend", ""), "aten");
    EXPECT_EQ(Predicted(stage, "").step_time, compiled.step_time) << "inductor is the default";
    EXPECT_LT(compiled.step_time, operators.step_time) << stage;
    EXPECT_LT(compiled.compute, operators.compute) << stage;
  }
}

TEST(CompiledFormTest, CommittedFormsCanBeSimulated) {
  for (const char* name : {"llama-3.2-1b", "llama-3.2-1b-cudnn", "qwen3-8b", "qwen3-8b-cudnn"}) {
    for (const int stage : {1, 3}) {
      const LoadedStep step = Loaded(SourceFolder() + "/traces/" + name, stage, "inductor");
      EXPECT_FALSE(step.profile->ops.empty()) << name;
    }
  }
}

}  // namespace
}  // namespace dcsim
