#include "exec/interpreter/argument_values.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim::exec {
namespace {

c10::TypePtr Optional(const c10::TypePtr& type) {
  return c10::OptionalType::create(type);
}
c10::TypePtr ListOf(const c10::TypePtr& type) {
  return c10::ListType::create(type);
}
const c10::TypePtr kTensor = c10::TensorType::get();
const c10::TypePtr kInt = c10::IntType::get();
const c10::TypePtr kFloat = c10::FloatType::get();
const c10::TypePtr kBool = c10::BoolType::get();
const c10::TypePtr kString = c10::StringType::get();
const c10::TypePtr kNumber = c10::NumberType::get();  // Scalar
const c10::TypePtr kDevice = c10::DeviceObjType::get();

c10::IValue Convert(const Argument& argument, const c10::TypePtr& type) {
  return ToIValue(argument, type, c10::Device("meta"));
}

// native_layer_norm's "Tensor? weight" takes None; "Tensor grad" that is not there is undefined.
TEST(ArgumentValuesTest, NoneIsAnUndefinedTensorOnlyWhereATensorIsNeeded) {
  EXPECT_TRUE(Convert(std::monostate(), Optional(kTensor)).isNone());
  EXPECT_TRUE(Convert(std::monostate(), Optional(kInt)).isNone());
  const c10::IValue undefined = Convert(std::monostate(), kTensor);
  ASSERT_TRUE(undefined.isTensor());
  EXPECT_FALSE(undefined.toTensor().defined());
}

TEST(ArgumentValuesTest, IntegersTakeTheSchemasType) {
  EXPECT_EQ(Convert(std::int64_t{-3}, kInt).toInt(), -3);
  EXPECT_EQ(Convert(std::int64_t{-3}, Optional(kInt)).toInt(), -3);
  EXPECT_EQ(Convert(std::int64_t{2}, kFloat).toDouble(), 2.0);
  EXPECT_TRUE(Convert(std::int64_t{2}, kNumber).isInt());  // a Scalar keeps its own
}

TEST(ArgumentValuesTest, FloatsStayFloats) {
  EXPECT_EQ(Convert(0.1, kFloat).toDouble(), 0.1);
  EXPECT_TRUE(Convert(2.0, kNumber).isDouble());
}

// Python's x * 2.5 is mul.Tensor with a wrapped number: it does not widen x to float64.
TEST(ArgumentValuesTest, NumbersBecomeWrappedTensors) {
  const at::Tensor real = Convert(2.5, kTensor).toTensor();
  EXPECT_TRUE(real.unsafeGetTensorImpl()->is_wrapped_number());
  EXPECT_EQ(real.dim(), 0);
  EXPECT_EQ(real.item<double>(), 2.5);
  const at::Tensor whole = Convert(std::int64_t{7}, Optional(kTensor)).toTensor();
  EXPECT_TRUE(whole.unsafeGetTensorImpl()->is_wrapped_number());
  EXPECT_EQ(whole.scalar_type(), at::kLong);
  EXPECT_EQ(whole.item<std::int64_t>(), 7);
}

TEST(ArgumentValuesTest, BoolsAndStringsStay) {
  EXPECT_TRUE(Convert(true, kBool).toBool());
  EXPECT_FALSE(Convert(false, Optional(kBool)).toBool());
  EXPECT_EQ(Convert(std::string("tanh"), kString).toStringRef(), "tanh");
}

TEST(ArgumentValuesTest, ListsTakeTheSchemasType) {
  const std::vector<std::int64_t> whole = {1, -1};
  EXPECT_EQ(Convert(whole, ListOf(kInt)).toIntVector(), whole);
  EXPECT_EQ(Convert(whole, Optional(ListOf(kInt))).toIntVector(), whole);
  EXPECT_EQ(Convert(whole, ListOf(kFloat)).toDoubleVector(), (std::vector<double>{1, -1}));
  EXPECT_EQ(Convert(std::vector<double>{0.5}, ListOf(kFloat)).toDoubleVector(),
            std::vector<double>{0.5});
  const auto mask = Convert(std::vector<bool>{true, false}, ListOf(kBool)).toBoolList();
  ASSERT_EQ(mask.size(), 2U);
  EXPECT_TRUE(mask[0]);
  EXPECT_FALSE(mask[1]);
}

// JSON does not say of what an empty list is empty.
TEST(ArgumentValuesTest, EmptyListsTakeTheSchemasType) {
  const std::vector<std::int64_t> none;
  EXPECT_TRUE(Convert(none, ListOf(kInt)).isIntList());
  EXPECT_TRUE(Convert(none, ListOf(kFloat)).isDoubleList());
  EXPECT_TRUE(Convert(none, ListOf(kBool)).isBoolList());
}

TEST(ArgumentValuesTest, TensorsAreHeldPlaces) {
  EXPECT_FALSE(Convert(ValueId(5), kTensor).toTensor().defined());
  const std::vector<ValueId> ids = {ValueId(1), ValueId::None()};
  EXPECT_EQ(Convert(ids, ListOf(kTensor)).toTensorList().size(), 2U);
  const c10::IValue optional = Convert(ids, ListOf(Optional(kTensor)));
  ASSERT_TRUE(optional.isOptionalTensorList());
  EXPECT_EQ(optional.toOptionalTensorList().size(), 2U);
}

// The recording's device is whatever the job runs on; explicit CPU tensors stay there.
TEST(ArgumentValuesTest, LocalDevicesAreTheJobs) {
  EXPECT_EQ(Convert(DeviceArgument{true}, kDevice).toDevice(), c10::Device("meta"));
  EXPECT_EQ(Convert(DeviceArgument{false}, Optional(kDevice)).toDevice(), c10::Device("cpu"));
}

// Numbers of c10/core/ScalarType.h, which PyTorch never changes: they are stored in checkpoints.
TEST(ArgumentValuesTest, DTypesHavePyTorchsNumbers) {
  const std::vector<std::pair<DType, std::int64_t>> numbers = {
      {DType::kBool, 11},       {DType::kUInt8, 0},     {DType::kInt8, 1},
      {DType::kInt16, 2},       {DType::kInt32, 3},     {DType::kInt64, 4},
      {DType::kUInt64, 29},     {DType::kFloat16, 5},   {DType::kBFloat16, 15},
      {DType::kFloat32, 6},     {DType::kFloat64, 7},   {DType::kFloat8E4M3, 24},
      {DType::kFloat8E5M2, 23}, {DType::kComplex64, 9}, {DType::kComplex128, 10}};
  for (const auto& [dtype, number] : numbers) {
    EXPECT_EQ(Convert(dtype, Optional(kInt)).toInt(), number);
    EXPECT_EQ(c10::elementSize(ToScalarType(dtype)), ElementBytes(dtype)) << number;
  }
}

TEST(ArgumentValuesTest, LayoutsAndFormatsAreNamed) {
  EXPECT_EQ(Convert(LayoutArgument{"strided"}, kInt).toLayout(), c10::Layout::Strided);
  EXPECT_EQ(ErrorText([] { Convert(LayoutArgument{"sparse_coo"}, kInt); }),
            "layout 'sparse_coo' is not supported, expected strided");
  EXPECT_EQ(Convert(MemoryFormatArgument{"channels_last"}, kInt).toMemoryFormat(),
            c10::MemoryFormat::ChannelsLast);
  EXPECT_EQ(Convert(MemoryFormatArgument{"preserve"}, kInt).toMemoryFormat(),
            c10::MemoryFormat::Preserve);
  EXPECT_EQ(ErrorText([] { Convert(MemoryFormatArgument{"wavy"}, kInt); }),
            "memory format 'wavy' is not supported");
}

}  // namespace
}  // namespace dcsim::exec
