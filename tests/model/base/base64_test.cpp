#include "model/base/base64.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

struct Vector {
  const char* bytes;
  const char* text;
};

class Base64VectorTest : public testing::TestWithParam<Vector> {};

TEST_P(Base64VectorTest, IsPrinted) {
  EXPECT_EQ(PrintBase64(GetParam().bytes), GetParam().text);
}

TEST_P(Base64VectorTest, IsRead) {
  EXPECT_EQ(FindBase64(GetParam().text), GetParam().bytes);
}

// RFC 4648, section 10.
INSTANTIATE_TEST_SUITE_P(Rfc4648,
                         Base64VectorTest,
                         testing::Values(Vector{"", ""},
                                         Vector{"f", "Zg=="},
                                         Vector{"fo", "Zm8="},
                                         Vector{"foo", "Zm9v"},
                                         Vector{"foob", "Zm9vYg=="},
                                         Vector{"fooba", "Zm9vYmE="},
                                         Vector{"foobar", "Zm9vYmFy"}));

// 0xfb 0xff 0xfe = 111110 111111 111111 111110, digits 62 63 63 62; then a zero byte.
TEST(Base64Test, HoldsAnyBytes) {
  const std::string bytes("\xfb\xff\xfe\x00", 4);
  EXPECT_EQ(PrintBase64(bytes), "+//+AA==");
  EXPECT_EQ(FindBase64("+//+AA=="), bytes);
}

class NoBase64Test : public testing::TestWithParam<const char*> {};

TEST_P(NoBase64Test, IsRejected) {
  EXPECT_EQ(FindBase64(GetParam()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Texts,
    NoBase64Test,
    testing::Values(
        "Z", "Zg", "Zg=", "Zm9vY", "Zg==Zg==", "Z===", "====", "Zm9-", "Zm9_", "Zm 9", "Zm9v\n"));

}  // namespace
}  // namespace dcsim
