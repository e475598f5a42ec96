#include "tools/common/deepspeed_keys.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/source_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

// The page is printed from the table; DCSIM_UPDATE_DOCS=1 writes it.
TEST(DeepSpeedKeysTest, ThePageIsTheTable) {
  const std::string path = SourceFolder() + "/docs/reference/deepspeed_keys.md";
  if (std::getenv("DCSIM_UPDATE_DOCS") != nullptr) {
    WriteFile(path, PrintDeepSpeedKeys());
  }
  EXPECT_EQ(ReadFile(path), PrintDeepSpeedKeys());
}

TEST(DeepSpeedKeysTest, EachKeyStandsOnceAndSaysWhy) {
  for (const DeepSpeedKey& key : DeepSpeedKeys()) {
    EXPECT_EQ(FindDeepSpeedKey(SectionOf(key.path), LastName(key.path)), &key) << key.path;
    EXPECT_TRUE(!key.why.empty()) << key.path;
  }
}

}  // namespace
}  // namespace dcsim
