// Seeded weights, inputs and fingerprints: values that Python computes (tools/dcrecord), printed by
//
//   import numpy as np
//   from dcrecord.fingerprint import fingerprint
//   from dcrecord.reference_training import seeded_input, seeded_parameter
//   for dtype in ("float32", "bfloat16"):
//       w = seeded_parameter({"name": "layer.weight"}, {"shape": [40, 50], "dtype": dtype}, seed=3)
//       print([float(x).hex() for x in w.flatten()[[0, 1, 1999]]])
//   ids = {"name": "ids", "fill": {"kind": "tokens", "vocabulary": 97}}
//   print(seeded_input(ids, {"shape": [2, 4], "dtype": "int64"}, "1/2/3", seed=7))
//   x = {"name": "x", "fill": {"kind": "uniform"}}
//   print([float(v).hex() for v in seeded_input(x, {"shape": [3], "dtype": "float32"}, "1/2/3",
//   7)]) print(fingerprint(np.array([0.5, -2.0, 3.25], dtype=np.float32), "w", seed=9).to_json())

#include "exec/reference/reference_data.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "exec/reference/fingerprint.h"
#include "model/ir/graph_text.h"

namespace dcsim::exec {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<double> Elements(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

/// The parameters and inputs of the snippet above.
Graph Seeded() {
  Graph graph = ParseGraphText(R"(
graph seeded 8 tokens
param layer.weight float32[40,50]
param wide.weight bfloat16[40,50]
param norm.weight bfloat16[3]
param layer.bias float32[2]
input ids int64[2,4]
input x float32[3]
forward
  l: float32[] = aten::sum(layer.weight)
  loss l
backward of 0
  tangent t: float32[] of l
)");
  graph.inputs[0].vocabulary = 97;
  graph.params[1].name = "layer.weight";  // the same words, rounded
  return graph;
}

std::vector<double> ParamElements(std::size_t param, std::int64_t begin, std::int64_t count) {
  return Elements(ReferenceParam(Seeded(), ParamId(param), 3, begin, count, c10::kCPU));
}

TEST(ReferenceDataTest, WeightsAreThoseOfPython) {
  EXPECT_THAT(ParamElements(0, 0, 2), ElementsAre(-0x1.e53cdap-7, 0x1.c408cap-6));
  EXPECT_THAT(ParamElements(0, 1999, 1), ElementsAre(0x1.5c2e1cp-9));
}

TEST(ReferenceDataTest, WeightsAreRoundedToTheirDType) {
  EXPECT_THAT(ParamElements(1, 0, 2), ElementsAre(-0x1.e6p-7, 0x1.c4p-6));
  EXPECT_THAT(ParamElements(1, 1999, 1), ElementsAre(0x1.5cp-9));
}

TEST(ReferenceDataTest, AnyPartCanBeMadeAlone) {
  const auto whole = ParamElements(0, 0, 2000);
  const auto part = ParamElements(0, 666, 667);
  EXPECT_EQ(part, std::vector<double>(whole.begin() + 666, whole.begin() + 1333));
}

TEST(ReferenceDataTest, NormsAreOneAndBiasesZero) {
  EXPECT_THAT(ParamElements(2, 0, 3), Each(1));
  EXPECT_THAT(ParamElements(3, 1, 1), ElementsAre(0));
}

// The formulas run through PyTorch's integer kernels on a GPU: here on the CPU by hand.
TEST(ReferenceDataTest, WordsAreSplitMix64) {
  // Published outputs of the generator with seed 1234567 (Rosetta Code, Vigna's C code).
  EXPECT_EQ(SplitMix64(1234567, 0), 6457827717110365317U);
  EXPECT_EQ(SplitMix64(1234567, 4), 16408922859458223821U);
}

TEST(ReferenceDataTest, TokensAreThoseOfPython) {
  const at::Tensor ids = ReferenceInput(Seeded(), 0, 7, MicroStepPlace(1, 2, 3));
  EXPECT_EQ(ids.scalar_type(), at::kLong);
  EXPECT_THAT(ids.sizes(), ElementsAre(2, 4));
  EXPECT_THAT(Elements(ids), ElementsAre(23, 34, 73, 33, 92, 87, 22, 36));
}

TEST(ReferenceDataTest, FloatInputsAreThoseOfPython) {
  Graph graph = Seeded();
  graph.inputs.erase(graph.inputs.begin());  // the first input's words have no name in them
  EXPECT_THAT(Elements(ReferenceInput(graph, 0, 7, "1/2/3")),
              ElementsAre(0x1.80b01p+0, 0x1.84c18ep-1, -0x1.fed7aep-3));
}

TEST(ReferenceDataTest, FurtherInputsHaveWordsOfTheirOwn) {
  Graph graph = Seeded();
  const at::Tensor second = ReferenceInput(graph, 1, 7, "1/2/3");
  graph.inputs.erase(graph.inputs.begin());
  EXPECT_TRUE(at::equal(second, ReferenceInput(graph, 0, 7, "1/2/3/x")));
}

// Fingerprints

TEST(FingerprintTest, IsThatOfPython) {
  const Fingerprint made = FingerprintOf(at::tensor({0.5F, -2.0F, 3.25F}), "w", 9);
  EXPECT_DOUBLE_EQ(made.norm, std::sqrt(0.25 + 4.0 + 10.5625));
  EXPECT_EQ(made.hash, 0xc7af4489d0b72c48U);
  EXPECT_THAT(made.projections, ElementsAre(4.75, 4.75, -0.75, 5.75, -0.75, 0.75, 1.75, 1.75, 1.75,
                                            -0.75, 4.75, -5.75, 4.75, -1.75, 0.75, -0.75));
}

TEST(FingerprintTest, CountsElementsInRowMajorOrder) {
  const at::Tensor rows = at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({2, 2});
  const at::Tensor columns = at::tensor({1.0F, 3.0F, 2.0F, 4.0F}).view({2, 2}).t();
  EXPECT_EQ(FingerprintOf(columns, "w", 0).hash, FingerprintOf(rows, "w", 0).hash);
}

// |a - b| = 0.25 in one element shows in each projection as +-0.25, so the estimate is exact:
// 0.25 / |a| with |a| = 4.
TEST(FingerprintTest, RelativeErrorComesFromTheProjections) {
  const Fingerprint a = FingerprintOf(at::tensor({4.0F, 0.0F}), "w", 0);
  const Fingerprint b = FingerprintOf(at::tensor({4.0F, 0.25F}), "w", 0);
  EXPECT_DOUBLE_EQ(RelativeError(a, b), 0.0625);
  EXPECT_EQ(RelativeError(a, a), 0);
}

TEST(FingerprintTest, ErrorsOfZeroGradientsAreAbsolute) {
  const Fingerprint zero = FingerprintOf(at::tensor({0.0F, 0.0F}), "w", 0);
  EXPECT_DOUBLE_EQ(RelativeError(zero, FingerprintOf(at::tensor({0.0F, 0.5F}), "w", 0)), 0.5);
}

}  // namespace
}  // namespace dcsim::exec
