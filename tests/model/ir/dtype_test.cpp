#include "model/ir/dtype.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

struct Row {
  DType dtype;
  const char* name;
  std::int64_t bytes;
  bool floating;
};

class DTypeTest : public testing::TestWithParam<Row> {};

TEST_P(DTypeTest, HasPyTorchsNameSizeAndKind) {
  EXPECT_EQ(DTypeName(GetParam().dtype), GetParam().name);
  EXPECT_EQ(ElementBytes(GetParam().dtype), GetParam().bytes);
  EXPECT_EQ(IsFloating(GetParam().dtype), GetParam().floating);
}

TEST_P(DTypeTest, IsFoundByItsName) {
  EXPECT_EQ(FindDType(GetParam().name), GetParam().dtype);
}

// torch.finfo and torch.iinfo state the bits.
INSTANTIATE_TEST_SUITE_P(All,
                         DTypeTest,
                         testing::Values(Row{DType::kBool, "bool", 1, false},
                                         Row{DType::kUInt8, "uint8", 1, false},
                                         Row{DType::kInt8, "int8", 1, false},
                                         Row{DType::kInt16, "int16", 2, false},
                                         Row{DType::kInt32, "int32", 4, false},
                                         Row{DType::kInt64, "int64", 8, false},
                                         Row{DType::kUInt64, "uint64", 8, false},
                                         Row{DType::kFloat16, "float16", 2, true},
                                         Row{DType::kBFloat16, "bfloat16", 2, true},
                                         Row{DType::kFloat32, "float32", 4, true},
                                         Row{DType::kFloat64, "float64", 8, true},
                                         Row{DType::kFloat8E4M3, "float8_e4m3fn", 1, true},
                                         Row{DType::kFloat8E5M2, "float8_e5m2", 1, true},
                                         Row{DType::kComplex64, "complex64", 8, false},
                                         Row{DType::kComplex128, "complex128", 16, false}));

TEST(FindDTypeTest, UnknownNamesAreNotFound) {
  EXPECT_EQ(FindDType("float"), std::nullopt);
  EXPECT_EQ(FindDType("torch.float32"), std::nullopt);
}

}  // namespace
}  // namespace dcsim
