#include "tools/common/xz.h"

#include <cstdint>
#include <lzma.h>
#include <string>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/error_text.h"

namespace dcsim {
namespace {

/// An .xz file's bytes, by liblzma itself.
std::string Compressed(const std::string& text) {
  std::string bytes(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  const lzma_ret code = lzma_easy_buffer_encode(
      6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
      reinterpret_cast<std::uint8_t*>(bytes.data()), &size, bytes.size());
  EXPECT_EQ(code, LZMA_OK);
  bytes.resize(size);
  return bytes;
}

/// More than a chunk of the decoder, and nothing that compresses to nothing.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i * 7919 % 100'003) + "\n";
  }
  return text;
}

std::string ErrorOf(const std::string& bytes) {
  return ErrorText([&bytes] { DecompressXz(bytes, "a.xz"); });
}

TEST(XzTest, TextComesBack) {
  for (const std::string& text : {std::string(), std::string("one\0two", 7), LongText()}) {
    EXPECT_EQ(DecompressXz(Compressed(text), "a.xz"), text);
    EXPECT_EQ(DecompressXz(CompressXz(text), "a.xz"), text);
  }
}

TEST(XzTest, StreamsInARowAreOneText) {
  EXPECT_EQ(DecompressXz(Compressed("one") + Compressed("two"), "a.xz"), "onetwo");
}

TEST(XzTest, OtherBytesAreAnError) {
  for (const std::string bytes : {"", "plain text that is no stream", "\x1f\x8b\b"}) {
    EXPECT_EQ(ErrorOf(bytes), "a.xz: not an xz file") << bytes;
  }
}

TEST(XzTest, ACutFileIsAnError) {
  const std::string whole = Compressed(LongText());
  for (const std::size_t kept :
       {std::size_t{7}, std::size_t{13}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_EQ(ErrorOf(whole.substr(0, kept)), "a.xz: damaged xz data: the file ends too early");
  }
}

TEST(XzTest, AFlippedBitIsAnError) {
  std::string bytes = Compressed(LongText());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  EXPECT_EQ(ErrorOf(bytes), "a.xz: damaged xz data");
}

// 512 MiB of dictionary, by the header of the first block: behind 12 bytes its length in words of
// four bytes less one, flags, the filter's number, one byte of properties, the size, and a CRC.
TEST(XzTest, ADictionaryOfMoreMemoryIsAnError) {
  std::string bytes = Compressed("text");
  const std::size_t begin = 12;
  const std::size_t length = (static_cast<std::size_t>(bytes[begin]) + 1) * 4;
  const std::size_t filter = bytes.find("\x21\x01", begin);
  ASSERT_LT(filter, begin + length);
  bytes[filter + 2] = 34;
  const std::uint32_t crc =
      lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data() + begin), length - 4, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[begin + length - 4 + i] = static_cast<char>(crc >> (8 * i));
  }
  EXPECT_EQ(ErrorOf(bytes),
            "a.xz: compressed so that more than 256 MiB are needed to decompress it");
}

// 300 MiB of zeros are 45 KiB.
TEST(XzTest, MoreThanIsReadIsAnError) {
  EXPECT_EQ(ErrorOf(Compressed(std::string(std::size_t{300} << 20U, '\0'))),
            "a.xz: larger than 256 MiB uncompressed, the most that is read");
}

}  // namespace
}  // namespace dcsim
