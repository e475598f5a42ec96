#include "tools/common/recorder.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// A dcrecord that is a shell script.
std::string Script(const TemporaryFolder& folder, const std::string& body) {
  const std::string path = folder / "dcrecord";
  WriteFile(path, "#!/bin/sh\n" + body);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

// Blanks, quotes and what a shell would run come as they are.
TEST(RecorderTest, WordsComeWithoutAShell) {
  const TemporaryFolder folder;
  const std::string recorder =
      Script(folder, "for word in \"$@\"; do echo \"<$word>\"; done >" + (folder / "words") + "\n");
  EXPECT_EQ(RunRecorder(recorder, {"python", "-m", "dcrecord", "a b", "$(touch x)", "--hold", "'"}),
            "");
  EXPECT_EQ(ReadFile(folder / "words"), "<a b>\n<$(touch x)>\n<--hold>\n<'>\n");
}

TEST(RecorderTest, FailureGivesTheLastLine) {
  const TemporaryFolder folder;
  const std::string recorder =
      Script(folder, "echo first; echo 'dcrecord: error: no' >&2; echo; exit 2\n");
  EXPECT_EQ(RunRecorder(recorder, {"python", "-m", "dcrecord", "m"}), "dcrecord: error: no");
  EXPECT_EQ(RunRecorder(Script(folder, "exit 3\n"), {"python", "-m", "dcrecord", "m"}),
            "dcrecord failed without a word");
}

TEST(RecorderTest, OtherCommandsAreNotRun) {
  const TemporaryFolder folder;
  const std::string recorder = Script(folder, "touch " + (folder / "ran") + "\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"rm", "-r", "x", "y"}, {"python", "-m", "dcrecord"}}) {
    EXPECT_EQ(RunRecorder(recorder, words), "the workload's command is none of dcrecord's");
  }
  EXPECT_FALSE(FileExists(folder / "ran"));
}

TEST(RecorderTest, RecorderIsLookedForInThePath) {
  const TemporaryFolder folder;
  const char* own = std::getenv("PATH");
  const std::string before = own == nullptr ? "" : own;
  setenv("PATH", folder.path().c_str(), 1);
  EXPECT_EQ(FindRecorder(), std::nullopt);
  const std::string recorder = Script(folder, "");
  EXPECT_EQ(FindRecorder(), recorder);
  setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace dcsim
