#include <gtest/gtest.h>

#include "model/ir/argument_reader.h"
#include "model/ir/argument_types.h"
#include "tests/support/error_text.h"
#include "tests/support/row_name.h"

namespace dcsim {
namespace {

constexpr std::size_t kValueCount = 9;

Argument Read(const char* json) {
  Faults faults(PointerLocator("a.json"));
  Argument argument = ReadArgument(Json::parse(json), kValueCount, Path(), faults);
  EXPECT_TRUE(faults.empty()) << json;
  return argument;
}

std::string ReadFault(const char* json) {
  Faults faults(PointerLocator("a.json"));
  ReadArgument(Json::parse(json), kValueCount, Path(), faults);
  return ErrorText([&] { faults.ThrowIfAny(); });
}

struct Form {
  const char* name;
  const char* json;
  std::size_t alternative;  // of Argument
};

class ArgumentFormTest : public testing::TestWithParam<Form> {};

TEST_P(ArgumentFormTest, IsReadAsItsKind) {
  EXPECT_EQ(Read(GetParam().json).index(), GetParam().alternative);
}

TEST_P(ArgumentFormTest, IsPrintedAsItWasRead) {
  EXPECT_EQ(PrintArgument(Read(GetParam().json)).dump(), GetParam().json);
}

// Alternatives in the order of Argument. An empty list is one of integers: nothing tells.
INSTANTIATE_TEST_SUITE_P(Forms,
                         ArgumentFormTest,
                         testing::Values(Form{"None", "null", 0},
                                         Form{"Tensor", R"({"v":8})", 1},
                                         Form{"TensorList", R"({"vs":[1,null,2]})", 2},
                                         Form{"EmptyTensorList", R"({"vs":[]})", 2},
                                         Form{"Integer", "-3", 3},
                                         Form{"LargestInteger", "9223372036854775807", 3},
                                         Form{"Float", "0.5", 4},
                                         Form{"WholeFloat", "1.0", 4},
                                         Form{"Infinity", R"({"f":"inf"})", 4},
                                         Form{"MinusInfinity", R"({"f":"-inf"})", 4},
                                         Form{"NotANumber", R"({"f":"nan"})", 4},
                                         Form{"Bool", "true", 5},
                                         Form{"String", R"("none")", 6},
                                         Form{"IntegerList", "[1,-2]", 7},
                                         Form{"EmptyList", "[]", 7},
                                         Form{"FloatList", "[1.0,2.5]", 8},
                                         Form{"BoolList", "[true,false]", 9},
                                         Form{"DType", R"({"dtype":"bfloat16"})", 10},
                                         Form{"LocalDevice", R"({"device":"local"})", 11},
                                         Form{"CpuDevice", R"({"device":"cpu"})", 11},
                                         Form{"Layout", R"({"layout":"strided"})", 12},
                                         Form{"MemoryFormat", R"({"memory_format":"contiguous"})",
                                              13}),
                         RowName());

TEST(ReadArgumentTest, UndefinedTensorInAListIsNone) {
  const auto ids = std::get<std::vector<ValueId>>(Read(R"({"vs":[1,null]})"));
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids[0], ValueId(1));
  EXPECT_TRUE(ids[1].is_none());
}

struct Fault {
  const char* name;
  const char* json;
  const char* message;
};

class ArgumentFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(ArgumentFaultTest, IsReported) {
  EXPECT_EQ(ReadFault(GetParam().json), GetParam().message);
}

constexpr char kNoForm[] =
    "a.json: expected an argument: a number, a text, true, false, null, a list of these, or one of "
    "{\"v\"}, {\"vs\"}, {\"f\"}, {\"dtype\"}, {\"device\"}, {\"layout\"}, {\"memory_format\"}";

INSTANTIATE_TEST_SUITE_P(
    Faults,
    ArgumentFaultTest,
    testing::Values(
        Fault{"IdOutOfRange", R"({"v": 9})", "a.json: /v: expected a value id below 9"},
        Fault{"NegativeId", R"({"v": -1})", "a.json: /v: expected a value id below 9"},
        Fault{"FloatId", R"({"v": 1.0})", "a.json: /v: expected a value id below 9"},
        Fault{"NoneAsTensor", R"({"v": null})", "a.json: /v: expected a value id below 9"},
        Fault{"IdInList", R"({"vs": [0, 9]})", "a.json: /vs/1: expected a value id below 9"},
        Fault{"UnknownDType", R"({"dtype": "bfloat61"})",
              "a.json: /dtype: expected bool, uint8, int8, int16, int32, int64, uint64, float16, "
              "bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, complex64 or complex128, "
              "found 'bfloat61', did you "
              "mean 'bfloat16'?"},
        Fault{"IntegerBeyond63Bits", "9223372036854775808", kNoForm},
        Fault{"MixedList", "[1, 2.5]", kNoForm},
        Fault{"ListOfTexts", R"(["a"])", kNoForm},
        Fault{"TwoTags", R"({"v": 1, "f": "inf"})", kNoForm},
        Fault{"NoTag", "{}", kNoForm},
        Fault{"UnknownTag", R"({"w": 1})", kNoForm},
        Fault{"UnknownFloat", R"({"f": "infinity"})", kNoForm},
        Fault{"NamedDevice", R"({"device": "cuda:0"})", kNoForm},
        Fault{"LayoutNumber", R"({"layout": 0})", kNoForm}),
    RowName());

struct Fit {
  const char* name;
  Argument argument;
  std::vector<std::string_view> fits;
  std::vector<std::string_view> fits_not;
};

class FitsTypeTest : public testing::TestWithParam<Fit> {};

TEST_P(FitsTypeTest, AcceptsWhatTheSchemaMeans) {
  for (const std::string_view type : GetParam().fits) {
    EXPECT_TRUE(FitsType(GetParam().argument, type)) << type;
  }
}

TEST_P(FitsTypeTest, RejectsEverythingElse) {
  for (const std::string_view type : GetParam().fits_not) {
    EXPECT_FALSE(FitsType(GetParam().argument, type)) << type;
  }
}

// A plain "Tensor" may be undefined, and may be a wrapped number; "Scalar" is any number. dtype,
// layout and memory format are "int" in schemas that PyTorch wrote before it had types for them.
INSTANTIATE_TEST_SUITE_P(
    Arguments,
    FitsTypeTest,
    testing::Values(
        Fit{"None", {}, {"Tensor", "Tensor?", "int?", "SymInt[]?"}, {"int", "Tensor[]", "bool"}},
        Fit{"Tensor", ValueId(0), {"Tensor", "Tensor?"}, {"Tensor[]", "int", "Scalar"}},
        Fit{"TensorList",
            std::vector<ValueId>{},
            {"Tensor[]", "Tensor?[]"},
            {"Tensor", "int[]", "Tensor?"}},
        Fit{"Integer",
            std::int64_t{1},
            {"int", "SymInt", "SymInt?", "Scalar", "float", "Tensor"},
            {"bool", "int[]", "str", "ScalarType"}},
        Fit{"Float", 1.0, {"float", "float?", "Scalar", "Tensor"}, {"int", "SymInt", "bool"}},
        Fit{"Bool", true, {"bool", "bool?", "Scalar"}, {"int", "float", "Tensor"}},
        Fit{"String", std::string("x"), {"str", "str?"}, {"int", "Tensor"}},
        Fit{"IntegerList",
            std::vector<std::int64_t>{},
            {"int[]", "int[2]", "SymInt[]", "int[1]?"},
            {"int", "Tensor[]", "bool[]", "bool[4]"}},
        Fit{"FloatList", std::vector<double>{}, {"float[]", "float[]?"}, {"int[]", "float"}},
        Fit{"BoolList", std::vector<bool>{}, {"bool[]", "bool[4]"}, {"int[]", "bool"}},
        Fit{"DType", DType::kBFloat16, {"ScalarType", "ScalarType?", "int"}, {"Layout", "str"}},
        Fit{"Device", DeviceArgument{}, {"Device", "Device?"}, {"Layout", "str"}},
        Fit{"Layout", LayoutArgument{}, {"Layout", "Layout?", "int"}, {"Device", "MemoryFormat"}},
        Fit{"MemoryFormat",
            MemoryFormatArgument{},
            {"MemoryFormat", "MemoryFormat?", "int"},
            {"Layout", "Device"}}),
    RowName());

}  // namespace
}  // namespace dcsim
