// dc-run beside PyTorch in Python: `python -m dcrecord reference` computes on this machine, within
// the test, so that the two can be compared bit for bit.

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

int RunShell(const std::string& command) {
  const int status = std::system(("cd '" + SourceFolder() + "' && " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const std::string kPython =
    "PYTHONPATH='" + SourceFolder() + "/tools/dcrecord/src' '" DCSIM_PYTHON "' ";
constexpr char kRun[] = "'" DCSIM_BIN_DIR "/dc-run' ";

struct CheckRow {
  std::string name;
  std::string folder;
  double error;  // of later losses, relative
};

/// The reference of three ranks with two micro-steps each, made once a workload.
class CheckTest : public testing::TestWithParam<CheckRow> {
 protected:
  static void SetUpTestSuite() { folder_ = new TemporaryFolder(); }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    const std::string& folder = GetParam().folder;
    if (made_.count(folder) == 0) {
      made_[folder] = RunShell(kPython + std::string("-m dcrecord reference ") + folder +
                               " --ranks 3 --accumulation 2 --steps 3 --seed 0 -o " +
                               ReferencePath() + " 2>/dev/null") == 0;
    }
    if (!made_[folder]) {
      GTEST_SKIP() << DCSIM_PYTHON << " cannot run dcrecord; pip install ./tools/python[record]";
    }
  }

  static std::string ReferencePath() { return *folder_ / (GetParam().name + ".json"); }

  static TemporaryFolder* folder_;
  static std::map<std::string, bool> made_;  // by workload: whether Python could
};

TemporaryFolder* CheckTest::folder_ = nullptr;
std::map<std::string, bool> CheckTest::made_;

// Losses and all gradients of three steps, so also the weights after two.
TEST_P(CheckTest, AgreesWithPythonBitForBit) {
  EXPECT_EQ(RunShell(kRun + std::string("check ") + GetParam().folder +
                     " --device cpu --exact --reference " + ReferencePath()),
            0);
}

// The sharded steps, through plan, schedule and ranks, against Python that knows nothing of them.
TEST_P(CheckTest, ExecutedStepsLoseWhatPythonLoses) {
  const Json reference = ParseJson(ReadFile(ReferencePath()), "reference");
  for (const std::string stage : {"1", "2", "3"}) {
    ASSERT_EQ(
        RunShell(kRun + std::string("step ") + GetParam().folder + " --plan configs/plans/zero" +
                 stage + ".yaml --set gradient_accumulation_steps=2 --gpus 3 --device cpu " +
                 "--warmup 1 --steps 2 --out " + folder_->path() + " >/dev/null 2>&1"),
        0);
    const std::string file = *folder_ / (GetParam().name + "-zero" + stage + "-3.json");
    const Json result = ParseJson(ReadFile(file), file);
    ASSERT_EQ(result["losses"].size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) {
      const double loss = reference["steps"][step]["loss"].get<double>();
      EXPECT_NEAR(result["losses"][step].get<double>(), loss, GetParam().error * loss)
          << "ZeRO-" << stage << ", step " << step;
    }
  }
}

// Mean losses of 6 micro-steps, equal to a few roundings of float32 (2^-24 each). With autocast
// such a rounding of a weight may turn its rounding to bfloat16 round: 2^-8 of one of the 15 or
// more terms of a product.
INSTANTIATE_TEST_SUITE_P(
    Workloads,
    CheckTest,
    testing::Values(CheckRow{"tiny-llama", "traces/tiny-llama", 8 * 0x1p-24},
                    CheckRow{"frozen", "tests/data/training/frozen", 8 * 0x1p-24},
                    CheckRow{"adapters", "tests/data/training/adapters", 8 * 0x1p-24},
                    CheckRow{"autocast", "tests/data/training/autocast", 0x1p-8 / 15}),
    [](const testing::TestParamInfo<CheckRow>& row) {
      return row.param.name == "tiny-llama" ? std::string("TinyLlama") : row.param.name;
    });

}  // namespace
}  // namespace dcsim
