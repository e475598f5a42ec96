// Recorded ops through PyTorch's dispatcher: one op, with arguments as the recorder writes them.

#include "exec/interpreter/op_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include "model/base/error.h"
#include "tests/exec/support/real_graph.h"
#include "tests/support/error_text.h"

namespace dcsim::exec {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kAdd[] = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
constexpr char kMul[] = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
constexpr char kAsStrided[] =
    "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
    "storage_offset=None) -> Tensor(a)";
constexpr char kMm[] = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
constexpr char kCat[] = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor";
constexpr char kIndex[] = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor";
constexpr char kSplit[] =
    "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]";
constexpr char kMax[] =
    "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)";
constexpr char kSum[] =
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor";
constexpr char kGelu[] = "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor";
constexpr char kToCopy[] =
    "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
    "memory_format=None) -> Tensor";

at::Tensor Floats(std::initializer_list<float> elements) {
  return at::tensor(elements);
}

/// Runs a graph of one op on its inputs; the frame afterwards.
Frame RunOne(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  OpProgram program(graph, c10::kCPU);
  Frame frame(graph.values.size());
  std::copy(inputs.begin(), inputs.end(), frame.begin());
  program.Run(OpId(0), frame);
  return frame;
}

void ExpectElements(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_TRUE(actual.dtype() == expected.dtype() && at::equal(actual, expected)) << actual;
}

// [1 2] + 2 * [10 20]
TEST(OpProgramTest, PassesTensorsAndScalars) {
  const Graph graph = OneOp(kAdd, {ValueId(0), ValueId(1), std::int64_t{2}}, 2, {ValueId(2)});
  ExpectElements(RunOne(graph, {Floats({1, 2}), Floats({10, 20})})[2], Floats({21, 42}));
}

TEST(OpProgramTest, WrappedNumbersDoNotWiden) {
  const Graph graph = OneOp(kMul, {ValueId(0), 2.5}, 1, {ValueId(1)});
  ExpectElements(RunOne(graph, {Floats({1, 2})})[1], Floats({2.5, 5}));
}

TEST(OpProgramTest, PassesListsOfTensors) {
  const Graph graph =
      OneOp(kCat, {std::vector{ValueId(1), ValueId(0)}, std::int64_t{0}}, 2, {ValueId(2)});
  ExpectElements(RunOne(graph, {Floats({1, 2}), Floats({3})})[2], Floats({3, 1, 2}));
}

// x[:, [2, 0]] of [[1 2 3] [4 5 6]]
TEST(OpProgramTest, PassesListsWithMissingTensors) {
  const Graph graph =
      OneOp(kIndex, {ValueId(0), std::vector{ValueId::None(), ValueId(1)}}, 2, {ValueId(2)});
  const at::Tensor rows = Floats({1, 2, 3, 4, 5, 6}).view({2, 3});
  const at::Tensor columns = at::tensor(std::vector<std::int64_t>{2, 0});
  ExpectElements(RunOne(graph, {rows, columns})[2], Floats({3, 1, 6, 4}).view({2, 2}));
}

TEST(OpProgramTest, TakesReturnedLists) {
  const Graph graph = OneOp(kSplit, {ValueId(0), std::int64_t{2}, std::int64_t{0}}, 1,
                            {ValueId(1), ValueId::None(), ValueId(3)});
  const Frame frame = RunOne(graph, {Floats({1, 2, 3, 4, 5})});
  ExpectElements(frame[1], Floats({1, 2}));
  EXPECT_FALSE(frame[2].defined());
  ExpectElements(frame[3], Floats({5}));
}

TEST(OpProgramTest, LeavesUnusedReturns) {
  const Graph graph =
      OneOp(kMax, {ValueId(0), std::int64_t{0}, false}, 1, {ValueId::None(), ValueId(2)});
  const Frame frame = RunOne(graph, {Floats({1, 7, 3})});
  EXPECT_FALSE(frame[1].defined());
  EXPECT_EQ(frame[2].item<std::int64_t>(), 1);
}

TEST(OpProgramTest, PassesListsBoolsAndNone) {
  const Graph graph = OneOp(
      kSum, {ValueId(0), std::vector<std::int64_t>{1}, true, std::monostate()}, 1, {ValueId(1)});
  ExpectElements(RunOne(graph, {Floats({1, 2, 3, 4}).view({2, 2})})[1],
                 Floats({3, 7}).view({2, 1}));
}

// gelu(1) = Phi(1) = 0.841345; with tanh 0.841192 (Hendrycks and Gimpel, arXiv 1606.08415).
TEST(OpProgramTest, PassesStrings) {
  const auto gelu = [](const std::string& approximate) {
    return RunOne(OneOp(kGelu, {ValueId(0), approximate}, 1, {ValueId(1)}), {Floats({1})})[1]
        .item<double>();
  };
  EXPECT_NEAR(gelu("none"), 0.841345, 1e-6);
  EXPECT_NEAR(gelu("tanh"), 0.841192, 1e-6);
}

// 1 + 2^-8 lies between the bfloat16s 1 and 1 + 2^-7 and goes to the even one.
TEST(OpProgramTest, PassesDTypeLayoutDeviceAndFormat) {
  const Graph graph =
      OneOp(kToCopy,
            {ValueId(0), DType::kBFloat16, LayoutArgument{"strided"}, DeviceArgument{true},
             std::monostate(), false, MemoryFormatArgument{"contiguous"}},
            1, {ValueId(1)});
  ExpectElements(RunOne(graph, {Floats({1.00390625F})})[1], at::ones({1}, at::kBFloat16));
}

TEST(OpProgramTest, KeepsNoTensorOfACall) {
  const Graph graph = OneOp(kCat, {std::vector{ValueId(0)}, std::int64_t{0}}, 1, {ValueId(1)});
  OpProgram program(graph, c10::kCPU);
  Frame frame = {Floats({1}), at::Tensor()};
  program.Run(OpId(0), frame);
  EXPECT_EQ(frame[0].use_count(), 1U);
  EXPECT_EQ(frame[1].use_count(), 1U);
}

TEST(OpProgramTest, UnknownOperatorsAreNamed) {
  const Graph graph = OneOp("my::op(Tensor a) -> Tensor", {ValueId(0)}, 1, {ValueId(1)});
  EXPECT_THAT(ErrorText([&] { const OpProgram program(graph, c10::kCPU); }),
              AllOf(StartsWith("my::op(Tensor a) -> Tensor: this libtorch (2.11"),
                    HasSubstr("has no such operator")));
}

// Such as an argument that an older or newer version has.
TEST(OpProgramTest, OtherSchemasAreShownBesideTheOwn) {
  const std::string other = "aten::mm(Tensor self, Tensor mat2, *, bool fast=False) -> Tensor";
  const Graph graph = OneOp(other, {ValueId(0), ValueId(1), false}, 2, {ValueId(2)});
  EXPECT_THAT(ErrorText([&] { const OpProgram program(graph, c10::kCPU); }),
              AllOf(StartsWith("aten::mm: the graph was recorded with another torch version"),
                    HasSubstr("recorded " + other), HasSubstr(std::string("has ") + kMm)));
}

TEST(OpProgramTest, PyTorchsErrorsNameTheOp) {
  const Graph graph = OneOp(kMm, {ValueId(0), ValueId(1)}, 2, {ValueId(2)});
  try {
    RunOne(graph, {at::ones({2, 3}), at::ones({2, 3})});
    FAIL() << "[2, 3] and [2, 3] have no product";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("op 0, aten::mm: "), HasSubstr("(2x3 and 2x3)"),
                                    Not(HasSubstr("\n"))));
  }
}

// A parameter lies among others: elements 2 and 4 of a view that begins at 1 of the recorded
// storage are 3 and 5 of the one here, which begins at 2.
TEST(OpProgramTest, OffsetOfAsStridedCountsFromTheRecordedBase) {
  Graph graph = OneOp(
      kAsStrided,
      {ValueId(0), std::vector<std::int64_t>{2}, std::vector<std::int64_t>{2}, std::int64_t{2}}, 1,
      {ValueId(1)});
  graph.values[0].offset = 1;
  const at::Tensor memory = Floats({0, 1, 2, 3, 4, 5, 6});
  const Frame frame = RunOne(graph, {memory.narrow(0, 2, 4)});
  ExpectElements(frame[1], Floats({3, 5}));
}

}  // namespace
}  // namespace dcsim::exec
