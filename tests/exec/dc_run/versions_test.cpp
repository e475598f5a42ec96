// What a measurement says it was made with.

#include "tools/dc_run/versions.h"

#include <gtest/gtest.h>

#include "dcsim_version.h"

namespace dcsim {
namespace {

// CUDA's runtime and NCCL tell their versions without a GPU.
TEST(VersionsTest, NameTheProgramAndItsLibraries) {
  const Json versions = Versions();
  EXPECT_EQ(versions.at("dc-run"), std::string(kVersion) + " " + kCommit);
  EXPECT_EQ(versions.at("torch"), "2.11.0");
  EXPECT_TRUE(versions.at("cuda").get<std::string>().starts_with("13."));
  EXPECT_TRUE(versions.at("nccl").get<std::string>().starts_with("2."));
}

}  // namespace
}  // namespace dcsim
