// Compiled graphs by schedule, beside PyTorch in Python, which runs the ATen graph of the workload.

#include <cstdlib>
#include <map>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "tests/support/source_folder.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

constexpr std::size_t kSteps = 3;

int RunShell(const std::string& command) {
  const int status = std::system(("cd '" + SourceFolder() + "' && " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Losses of two ranks with one and with two micro-steps.
class CompiledStepTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { folder_ = new TemporaryFolder(); }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    const std::string count = std::to_string(GetParam());
    reference_ = *folder_ / ("reference-" + count + ".json");
    if (RunShell("PYTHONPATH='" + SourceFolder() +
                 "/tools/dcrecord/src' '" DCSIM_PYTHON
                 "' -m dcrecord reference traces/tiny-llama --ranks 2 --accumulation " +
                 count + " --steps " + std::to_string(kSteps) + " -o " + reference_ +
                 " 2>/dev/null") != 0) {
      GTEST_SKIP() << DCSIM_PYTHON << " cannot run dcrecord; pip install ./tools/python[record]";
    }
  }

  static TemporaryFolder* folder_;
  std::string reference_;
};

TemporaryFolder* CompiledStepTest::folder_ = nullptr;

// To a few roundings of float32 (2^-24 each) of each of at most 4 losses.
TEST_P(CompiledStepTest, LosesWhatPythonLoses) {
  const Json reference = ParseJson(ReadFile(reference_), "reference");
  const std::string count = std::to_string(GetParam());
  for (const std::string stage : {"1", "2", "3"}) {
    ASSERT_EQ(
        RunShell("'" DCSIM_BIN_DIR "/dc-run' step traces/tiny-llama --plan configs/plans/zero" +
                 stage + ".yaml --set backend=inductor --set gradient_accumulation_steps=" + count +
                 " --gpus 2 --device cpu --warmup 1 --steps " + std::to_string(kSteps - 1) +
                 " --out " + folder_->path() + " >/dev/null"),
        0);
    const std::string file = *folder_ / ("tiny-llama-zero" + stage + "-2.json");
    const Json result = ParseJson(ReadFile(file), file);
    EXPECT_EQ(result["plan"]["backend"], "inductor");
    ASSERT_EQ(result["losses"].size(), kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      const double loss = reference["steps"][step]["loss"].get<double>();
      EXPECT_NEAR(result["losses"][step].get<double>(), loss, 8 * 0x1p-24 * loss)
          << "ZeRO-" << stage << ", step " << step;
    }
  }
}

TEST_P(CompiledStepTest, CheckAgrees) {
  for (const std::string stage : {"1", "3"}) {
    EXPECT_EQ(RunShell("'" DCSIM_BIN_DIR "/dc-run' check traces/tiny-llama --device cpu --backend "
                       "inductor --stage " +
                       stage + " --reference " + reference_ + " >/dev/null"),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(MicroSteps, CompiledStepTest, testing::Values(1, 2));

// The first case has a plan that nothing can read; the other is measured and shown all the same.
TEST(CompiledSuiteTest, RunsCompiledPlansAndGoesOnBehindACaseThatCannot) {
  const TemporaryFolder folder;
  const std::string traces = SourceFolder() + "/traces/";
  WriteFile(folder / "plan.yaml", "format: dc-plan-spec/1\npolicy: plain-9\nstage: 3\n");
  WriteFile(folder / "suite.yaml",
            "format: dc-suites/1\ncluster: " + SourceFolder() +
                "/configs/clusters/h200-1.yaml\ngpus: 1\nsuites:\n  both:\n    warmup: 1\n"
                "    steps: 2\n    cases:\n      - {workload: " +
                traces + "tiny-llama, plans: [plan.yaml]}\n      - {workload: " + traces +
                "tiny-llama, plans: [" + SourceFolder() +
                "/configs/plans/zero3.yaml], set: {backend: inductor}, name: compiled}\n");
  EXPECT_EQ(RunShell("'" DCSIM_BIN_DIR "/dc-run' validate --device cpu --suite " +
                     (folder / "suite.yaml") + ":both --results " + folder.path() + " >" +
                     (folder / "shown") + " 2>" + (folder / "said")),
            2);
  EXPECT_NE(ReadFile(folder / "said").find("plain-9"), std::string::npos);
  EXPECT_NE(ReadFile(folder / "shown").find("backend inductor"), std::string::npos);
  EXPECT_TRUE(FileExists(folder / "tiny-llama/h200-1/zero3-compiled.json.gz"));
}

}  // namespace
}  // namespace dcsim
