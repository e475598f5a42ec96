// Runs the programs as a person does: each folder of DCSIM_GOLDEN_FOLDER holds a command, `cmd`,
// and what it printed and left behind. tests/golden/update_golden.py writes the expectations anew.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/source_folder.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/answer_json.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

const std::string kGoldenFolder = SourceFolder() + "/" DCSIM_GOLDEN_FOLDER;

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGoldenFolder)) {
    if (FileExists(entry.path() / "cmd")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// What stands in a file of expectations; nothing when there is no such file.
std::string Expected(const std::string& name, const std::string& file) {
  const std::string path = kGoldenFolder + "/" + name + "/" + file;
  return FileExists(path) ? ReadFile(path) : "";
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct GoldenRun {
  std::string stdout_text;
  std::string stderr_text;
  std::string exit_code;
  std::string files;  // names in $OUT, a line each
};

/// Runs a case in the source folder, with the built programs first in PATH, the case's folder in
/// $CASE and an empty folder in $OUT, whose name is taken out of what is
/// printed, as the programs' version is.
GoldenRun RunCase(const std::string& name) {
  const TemporaryFolder out;
  const TemporaryFolder streams;
  const std::string command =
      "cd '" + SourceFolder() +
      "' && PATH='" DCSIM_BIN_DIR "':\"$PATH\" LC_ALL=C CASE='" DCSIM_GOLDEN_FOLDER "/" + name +
      "' OUT='" + out.path() + "' sh '" DCSIM_GOLDEN_FOLDER "/" + name + "/cmd' >'" +
      streams / "stdout" + "' 2>'" + streams / "stderr" + "'";
  const int status = std::system(command.c_str());
  GoldenRun run;
  const std::string version = AnsweringVersion().at("dc-sim").get<std::string>();
  run.stdout_text =
      Replace(Replace(ReadFile(streams / "stdout"), out.path(), "$OUT"), version, "$VERSION");
  run.stderr_text = Replace(ReadFile(streams / "stderr"), out.path(), "$OUT");
  run.exit_code = WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) + "\n" : "killed\n";
  for (const std::string& file : out.Names()) {
    run.files += file + "\n";
  }
  return run;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, PrintsWhatItPrinted) {
  const GoldenRun run = RunCase(GetParam());
  EXPECT_EQ(run.stdout_text, Expected(GetParam(), "stdout"));
  EXPECT_EQ(run.stderr_text, Expected(GetParam(), "stderr"));
  EXPECT_EQ(run.exit_code, Expected(GetParam(), "exit"));
  EXPECT_EQ(run.files, Expected(GetParam(), "files"));
}

std::string TestName(const testing::TestParamInfo<std::string>& case_name) {
  std::string name = case_name.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(CaseNames()), TestName);

}  // namespace
}  // namespace dcsim
