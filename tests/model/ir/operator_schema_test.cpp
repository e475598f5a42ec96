#include "model/ir/operator_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcsim {
namespace {

// Every schema below that is accepted is what str(op._schema) of torch 2.11 prints.

std::vector<std::string> Types(const std::vector<SchemaField>& fields) {
  std::vector<std::string> types;
  types.reserve(fields.size());
  for (const SchemaField& field : fields) {
    types.push_back(field.type);
  }
  return types;
}

std::vector<std::string> Names(const std::vector<SchemaField>& fields) {
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const SchemaField& field : fields) {
    names.push_back(field.name);
  }
  return names;
}

TEST(OperatorSchemaTest, NameAndOverloadAreSplitAtTheDot) {
  const auto schema = FindSchema("aten::add.Tensor(Tensor self, Tensor other) -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->name, "aten::add");
  EXPECT_EQ(schema->overload, "Tensor");
}

TEST(OperatorSchemaTest, OverloadIsEmptyWithoutADot) {
  const auto schema = FindSchema("aten::mm(Tensor self, Tensor mat2) -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->name, "aten::mm");
  EXPECT_EQ(schema->overload, "");
}

TEST(OperatorSchemaTest, StarBeforeKeywordArgumentsIsNoArgument) {
  const auto schema = FindSchema(
      "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)"
      " -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->arguments),
              testing::ElementsAre("self", "mat1", "mat2", "beta", "alpha"));
}

TEST(OperatorSchemaTest, DefaultsAreNoPartOfTheName) {
  const auto schema = FindSchema(
      "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
      "memory_format=None) -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->arguments),
              testing::ElementsAre("self", "dtype", "layout", "device", "pin_memory",
                                   "non_blocking", "memory_format"));
  EXPECT_THAT(Types(schema->arguments),
              testing::ElementsAre("Tensor", "ScalarType?", "Layout?", "Device?", "bool?", "bool",
                                   "MemoryFormat?"));
}

// The commas of "[1, 1]" separate no arguments.
TEST(OperatorSchemaTest, ListDefaultsStayWhole) {
  const auto schema = FindSchema(
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
      "SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->arguments), testing::ElementsAre("input", "weight", "bias", "stride",
                                                             "padding", "dilation", "groups"));
  EXPECT_EQ(schema->arguments[3].type, "SymInt[2]");
}

TEST(OperatorSchemaTest, QuotedDefaultsStayWhole) {
  const auto schema = FindSchema("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->arguments), testing::ElementsAre("self", "approximate"));
  EXPECT_EQ(schema->arguments[1].type, "str");
}

// Not a real operator: brackets and commas inside quotes are text.
TEST(OperatorSchemaTest, PunctuationInsideQuotesIsText) {
  const auto schema = FindSchema("my::op(str a=\"),(\", int b=0) -> Tensor");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->arguments), testing::ElementsAre("a", "b"));
}

TEST(OperatorSchemaTest, ViewMarksAreAliasesAndNoPartOfTheType) {
  const auto schema = FindSchema("aten::t(Tensor(a) self) -> Tensor(a)");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->arguments[0].type, "Tensor");
  EXPECT_TRUE(schema->arguments[0].aliases);
  EXPECT_FALSE(schema->arguments[0].writes);
  EXPECT_EQ(schema->returns[0].type, "Tensor");
  EXPECT_TRUE(schema->returns[0].aliases);
}

TEST(OperatorSchemaTest, ExclamationMarkSaysThatTheOperatorWrites) {
  const auto schema = FindSchema(
      "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  ASSERT_TRUE(schema);
  EXPECT_TRUE(schema->arguments[0].writes);
  EXPECT_FALSE(schema->arguments[1].writes);
  EXPECT_FALSE(schema->arguments[1].aliases);
  EXPECT_TRUE(schema->returns[0].writes);
}

TEST(OperatorSchemaTest, ListOfViewsKeepsItsBrackets) {
  const auto schema = FindSchema(
      "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->arguments[0].type, "Tensor");
  EXPECT_EQ(schema->arguments[0].name, "self");
  EXPECT_TRUE(schema->arguments[0].aliases);
  ASSERT_EQ(schema->returns.size(), 1U);
  EXPECT_EQ(schema->returns[0].type, "Tensor[]");
  EXPECT_TRUE(schema->returns[0].aliases);
}

TEST(OperatorSchemaTest, SeveralReturnsHaveTypesAndNames) {
  const auto schema = FindSchema(
      "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
      "dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
      "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt "
      "max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Names(schema->returns),
              testing::ElementsAre("output", "logsumexp", "cum_seq_q", "cum_seq_k", "max_q",
                                   "max_k", "rng_state", "unused", "debug_attn_mask"));
  EXPECT_EQ(schema->returns[4].type, "SymInt");
}

TEST(OperatorSchemaTest, SeveralReturnsMayHaveNoNames) {
  const auto schema = FindSchema(
      "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? "
      "bias, float eps) -> (Tensor, Tensor, Tensor)");
  ASSERT_TRUE(schema);
  EXPECT_THAT(Types(schema->returns), testing::ElementsAre("Tensor", "Tensor", "Tensor"));
  EXPECT_THAT(Names(schema->returns), testing::ElementsAre("", "", ""));
}

TEST(OperatorSchemaTest, NoReturnIsAnEmptyPair) {
  const auto schema =
      FindSchema("aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()");
  ASSERT_TRUE(schema);
  EXPECT_TRUE(schema->returns.empty());
}

TEST(OperatorSchemaTest, NoArgumentsIsAnEmptyPair) {
  const auto schema = FindSchema("prim::device_count() -> int");
  ASSERT_TRUE(schema);
  EXPECT_TRUE(schema->arguments.empty());
  EXPECT_EQ(schema->returns[0].type, "int");
}

class NoSchemaTest : public testing::TestWithParam<const char*> {};

TEST_P(NoSchemaTest, IsRejected) {
  EXPECT_FALSE(FindSchema(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Texts,
                         NoSchemaTest,
                         testing::Values("",
                                         "aten::mm",
                                         "mm(Tensor self) -> Tensor",
                                         "::mm(Tensor self) -> Tensor",
                                         "aten::(Tensor self) -> Tensor",
                                         "aten::mm(Tensor self -> Tensor",
                                         "aten::mm(Tensor self)",
                                         "aten::mm(Tensor self)-> Tensor"));

}  // namespace
}  // namespace dcsim
