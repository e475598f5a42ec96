// Files of compiled kernels: what is read, and what is refused.

#include "exec/interpreter/kernel_binaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/base64.h"
#include "model/ir/graph_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"

namespace dcsim::exec {
namespace {

using testing::HasSubstr;

Json Entry(const std::string& hash, const Json& arguments, const Json& aligned) {
  return {{"hash", hash},
          {"config", {{"XBLOCK", 4}, {"R0_BLOCK", 4}, {"num_warps", 4}}},
          {"entry", "kernel"},
          {"shared", 128},
          {"arguments", arguments},
          {"aligned", aligned},
          {"cubin", PrintBase64("\x7f"
                                "ELF and more")}};
}

/// Binaries of CompiledDocument's kernels, to which TheGraph gives hashes of their own.
Json TheDocument() {
  return {{"format", "dc-kernels/1"},
          {"workload", "small"},
          {"recorder", {{"dcrecord", "0.1.0"}, {"triton", "3.6.0"}}},
          {"architecture", "sm_90"},
          {"kernels",
           {Entry("aa", {0, 1}, {0}), Entry("bb", {0, 1, 3}, {0, 1}),
            Entry("cc", {0, 1, 2, 3}, {0, 1, 2})}}};
}

Json TheGraphDocument() {
  Json document = CompiledDocument();
  document["kernels"][0]["hash"] = "aa";
  document["kernels"][1]["hash"] = "bb";
  document["kernels"][2]["hash"] = "cc";
  return document;
}

Graph TheGraph() {
  return ParseGraph(TheGraphDocument().dump(), "g.json");
}

KernelBinaries Parse(const Json& document) {
  return ParseKernelBinaries(document.dump(), "kernels.json");
}

TEST(KernelBinariesTest, AreRead) {
  const KernelBinaries binaries = Parse(TheDocument());
  EXPECT_EQ(binaries.file, "kernels.json");
  EXPECT_EQ(binaries.architecture, "sm_90");
  ASSERT_EQ(binaries.by_hash.size(), 3U);
  ASSERT_EQ(binaries.by_hash.at("bb").size(), 1U);
  const KernelBinary& binary = binaries.by_hash.at("bb").front();
  EXPECT_EQ(binary.config.at("XBLOCK"), 4);
  EXPECT_EQ(binary.entry, "kernel");
  EXPECT_EQ(binary.shared, 128);
  EXPECT_THAT(binary.passed, testing::ElementsAre(0, 1, 3));
  EXPECT_THAT(binary.aligned, testing::ElementsAre(0, 1));
  EXPECT_EQ(binary.cubin,
            "\x7f"
            "ELF and more");
  EXPECT_EQ(FindUnlaunchable(TheGraph(), binaries), "");
}

TEST(KernelBinariesTest, AKernelHasAnEntryForEachConfiguration) {
  Json document = TheDocument();
  Json other = document["kernels"][0];
  other["config"]["XBLOCK"] = 8;
  document["kernels"].push_back(other);
  const KernelBinaries binaries = Parse(document);
  ASSERT_EQ(binaries.by_hash.at("aa").size(), 2U);
  EXPECT_EQ(binaries.by_hash.at("aa")[1].config.at("XBLOCK"), 8);
  EXPECT_EQ(FindUnlaunchable(TheGraph(), binaries),
            "kernel relu was compiled with another configuration");
  Json graph = TheGraphDocument();
  graph["kernels"][0]["configs"].push_back(other["config"]);
  EXPECT_EQ(FindUnlaunchable(ParseGraph(graph.dump(), "g.json"), binaries), "");
}

struct Bad {
  const char* pointer;
  Json value;
  const char* fault;
};

class BadBinariesTest : public testing::TestWithParam<Bad> {};

TEST_P(BadBinariesTest, AreRefused) {
  Json document = TheDocument();
  document[Json::json_pointer(GetParam().pointer)] = GetParam().value;
  EXPECT_THAT(ErrorText([&] { Parse(document); }), HasSubstr(GetParam().fault));
}

INSTANTIATE_TEST_SUITE_P(
    Faults,
    BadBinariesTest,
    testing::Values(
        Bad{"/format", "dc-kernels/2", "dc-kernels/1"},
        Bad{"/kernels", "none", "kernels"},
        Bad{"/kernels/0", 7, "/kernels/0: expected an object"},
        Bad{"/kernels/0/hash", 7, "/kernels/0/hash: expected a text"},
        Bad{"/kernels/1/hash", "aa", "kernel aa is there twice with the same configuration"},
        Bad{"/kernels/0/config", 4, "expected an object of whole numbers with num_warps"},
        Bad{"/kernels/0/config", Json{{"XBLOCK", 4}}, "with num_warps"},
        Bad{"/kernels/0/config/XBLOCK", 0, "expected a number of at least 1"},
        Bad{"/kernels/0/shared", -1, "expected bytes of 0 or more"},
        Bad{"/kernels/0/arguments", Json{1, 0}, "expected positions in rising order"},
        Bad{"/kernels/0/arguments", Json{-1}, "expected positions in rising order"},
        Bad{"/kernels/0/aligned", Json{2}, "expected positions that are among arguments"},
        Bad{"/kernels/0/cubin", "not base64", "expected a cubin in base64"},
        Bad{"/kernels/0/cubin", PrintBase64("a text"), "expected a cubin in base64"},
        Bad{"/kernels/0/more", 1, "more"}));

TEST(KernelBinariesTest, TextThatIsNoDocumentIsRefused) {
  EXPECT_NE(ErrorText([] { ParseKernelBinaries("{", "kernels.json"); }), "");
}

/// What is wrong with binaries once one of their entries is changed.
std::string FaultWith(const char* pointer, const Json& value) {
  Json document = TheDocument();
  document[Json::json_pointer(pointer)] = value;
  return FindUnlaunchable(TheGraph(), Parse(document));
}

TEST(UnlaunchableTest, OtherSourcesConfigurationsAndArgumentsAreNamed) {
  EXPECT_EQ(FaultWith("/kernels/1/hash", "dd"), "kernel total is not in it");
  EXPECT_EQ(FaultWith("/kernels/1/config/XBLOCK", 8),
            "kernel total was compiled with another configuration");
  EXPECT_EQ(FaultWith("/kernels/1/arguments", Json{0, 1, 2, 3}),
            "kernel total was compiled with other arguments");
  EXPECT_EQ(FaultWith("/kernels/1/aligned", Json{3}),
            "kernel total was compiled with other arguments");
}

TEST(UnlaunchableTest, GridsAndTypesThatAreUnknownAreNamed) {
  Json document = TheGraphDocument();
  document["kernels"][0]["grid"] = "SplitScanGrid";
  EXPECT_EQ(FindUnlaunchable(ParseGraph(document.dump(), "g.json"), Parse(TheDocument())),
            "kernel relu has grid SplitScanGrid, which dc-run cannot compute");
  document = TheGraphDocument();
  document["kernels"][0]["signature"][1][1] = "bf16";
  EXPECT_EQ(FindUnlaunchable(ParseGraph(document.dump(), "g.json"), Parse(TheDocument())),
            "kernel relu takes xnumel of type bf16, which dc-run cannot pass");
}

}  // namespace
}  // namespace dcsim::exec
