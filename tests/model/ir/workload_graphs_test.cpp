#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "model/ir/profile_reader.h"
#include "tests/support/workloads.h"

namespace dcsim {
namespace {

class WorkloadGraphTest : public testing::TestWithParam<std::string> {};

// What the recorder (Python's json) has written is what the reader understands, to the last digit.
TEST_P(WorkloadGraphTest, PrintGivesTheFileBackByteForByte) {
  const std::string text = WorkloadText(GetParam());
  const bool equal = PrintGraph(ParseGraph(text, GetParam())) == text;
  EXPECT_TRUE(equal) << "a difference of megabytes is not shown";
}

class WorkloadProfileTest : public testing::TestWithParam<std::string> {};

TEST_P(WorkloadProfileTest, PrintGivesTheFileBackByteForByte) {
  const std::string text = WorkloadProfileText(GetParam());
  const Graph graph = WorkloadGraph(GetParam());
  const bool equal = PrintProfile(ParseProfile(text, graph, GetParam())) == text;
  EXPECT_TRUE(equal) << "a difference of megabytes is not shown";
}

std::string LettersOnly(const testing::TestParamInfo<std::string>& workload) {
  std::string name = workload.param;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, WorkloadGraphTest, testing::ValuesIn(WorkloadNames()), LettersOnly);
INSTANTIATE_TEST_SUITE_P(All,
                         WorkloadProfileTest,
                         testing::ValuesIn(ProfiledWorkloadNames()),
                         LettersOnly);

struct Size {
  const char* name;
  const char* workload;
  std::int64_t parameters;
  std::size_t tensors;
};

class WorkloadSizeTest : public testing::TestWithParam<Size> {};

TEST_P(WorkloadSizeTest, IsThatOfThePublishedModel) {
  const Graph graph = WorkloadGraph(GetParam().workload);
  EXPECT_EQ(graph.parameter_count(), GetParam().parameters);
  EXPECT_EQ(graph.params.size(), GetParam().tensors);
}

// Hugging Face's model cards (safetensors metadata): Qwen/Qwen3-8B, meta-llama/Meta-Llama-3-8B,
// meta-llama/Llama-3.2-1B, whose output layer is tied to its embedding. Tensors, by hand: Qwen3 has
// 36 layers of 11 (4 projections, 2 head norms, 3 of the MLP, 2 norms), Llama 32 and 16 of 9, and 3
// or, tied, 2 besides. The MLP has 8 layers of 4096^2.
INSTANTIATE_TEST_SUITE_P(Published,
                         WorkloadSizeTest,
                         testing::Values(Size{"Qwen3", "qwen3-8b", 8'190'735'360, 36 * 11 + 3},
                                         Size{"Llama3", "llama-3-8b", 8'030'261'248, 32 * 9 + 3},
                                         Size{"Llama32", "llama-3.2-1b", 1'235'814'400, 16 * 9 + 2},
                                         Size{"Mlp", "mlp-8x4096", 8LL * 4096 * 4096, 8}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(WorkloadGraphTest, TiedOutputLayerIsNamedByItsEmbedding) {
  const Graph graph = WorkloadGraph("llama-3.2-1b");
  EXPECT_EQ(graph.params[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(graph.params[0].tied, std::vector<std::string>{"lm_head.weight"});
}

// Every parameter is trained, so each has one gradient, and none comes twice (the reader checks).
TEST(WorkloadGraphTest, Qwen3HasAGradientForEachParameter) {
  const Graph graph = WorkloadGraph("qwen3-8b");
  ASSERT_EQ(graph.graphs.size(), 2U);
  std::size_t gradients = 0;
  for (const GraphOutput& output : graph.graphs[1].outputs) {
    gradients += output.kind == GraphOutputKind::kGradient ? 1 : 0;
  }
  EXPECT_EQ(gradients, 399U);
}

}  // namespace
}  // namespace dcsim
