// dc-run beside PyTorch in Python: `python -m dcrecord reference` computes on this machine, within
// the test, so that the two can be compared bit for bit.

#include <cstdlib>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "model/ir/document.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

int RunShell(const std::string& command) {
  const int status = std::system(("cd '" DCSIM_SOURCE_DIR "' && " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr char kPython[] =
    "PYTHONPATH='" DCSIM_SOURCE_DIR "/tools/dcrecord/src' '" DCSIM_PYTHON "' ";
constexpr char kRun[] = "'" DCSIM_BIN_DIR "/dc-run' ";

/// The reference of three ranks with two micro-steps each, made once.
class CheckTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    made_ =
        RunShell(kPython + std::string("-m dcrecord reference traces/tiny-llama --ranks 3 ") +
                 "--accumulation 2 --steps 3 --seed 0 -o " + ReferencePath() + " 2>/dev/null") == 0;
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    if (!made_) {
      GTEST_SKIP() << DCSIM_PYTHON << " cannot run dcrecord; pip install ./tools/dcrecord";
    }
  }

  static std::string ReferencePath() { return *folder_ / "reference.json"; }

  static TemporaryFolder* folder_;
  static bool made_;
};

TemporaryFolder* CheckTest::folder_ = nullptr;
bool CheckTest::made_ = false;

// Losses and all gradients of three steps, so also the weights after two.
TEST_F(CheckTest, AgreesWithPythonBitForBit) {
  EXPECT_EQ(
      RunShell(kRun + std::string("check traces/tiny-llama --device cpu --exact --reference ") +
               ReferencePath()),
      0);
}

// The sharded steps, through plan, schedule and ranks, against Python that knows nothing of them:
// mean losses of 6 micro-steps, near 4.6, equal to a few roundings of float32 (2^-24 each).
TEST_F(CheckTest, ExecutedStepsLoseWhatPythonLoses) {
  const Json reference = ParseJson(ReadFile(ReferencePath()), "reference");
  for (const std::string stage : {"1", "2", "3"}) {
    ASSERT_EQ(
        RunShell(kRun + std::string("step traces/tiny-llama --plan configs/plans/zero") + stage +
                 ".yaml --set gradient_accumulation_steps=2 --gpus 3 --device cpu --warmup 1 " +
                 "--steps 2 --out " + folder_->path() + " >/dev/null 2>&1"),
        0);
    const std::string file = *folder_ / ("tiny-llama-zero" + stage + "-3.json");
    const Json result = ParseJson(ReadFile(file), file);
    ASSERT_EQ(result["losses"].size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) {
      EXPECT_NEAR(result["losses"][step].get<double>(),
                  reference["steps"][step]["loss"].get<double>(), 4.6 * 8 * 0x1p-24)
          << "ZeRO-" << stage << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace dcsim
