#include "tools/common/xz.h"

#include <array>
#include <cstdint>
#include <lzma.h>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

/// What decompression may take; xz -9 needs 65 MiB.
constexpr Bytes kMemory = Bytes::MiB(256);

/// How every .xz file begins.
constexpr std::string_view kMagic("\xFD\x37zXZ\0", 6);

/// An lzma_stream over `bytes` that ends with this.
class Coder {
 public:
  explicit Coder(std::string_view bytes) {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    stream_.avail_in = bytes.size();
  }
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  ~Coder() { lzma_end(&stream_); }
  lzma_stream* get() { return &stream_; }

  /// Appends what comes next to `out`.
  lzma_ret Continue(std::string& out) {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(chunk_.data());
    stream_.avail_out = chunk_.size();
    const lzma_ret code = lzma_code(&stream_, LZMA_FINISH);
    out.append(chunk_.data(), chunk_.size() - stream_.avail_out);
    return code;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::array<char, std::size_t{1} << 16U> chunk_{};
};

[[noreturn]] void FailOnCode(lzma_ret code, const std::string& path) {
  switch (code) {
    case LZMA_FORMAT_ERROR:
      throw Error(path + ": not an xz file");
    case LZMA_MEM_ERROR:
      throw SystemError(path + ": too little memory to decompress");
    case LZMA_MEMLIMIT_ERROR:
      throw Error(path + ": compressed so that more than " + FormatBytes(kMemory) +
                  " are needed to decompress it");
    case LZMA_BUF_ERROR:
      throw Error(path + ": damaged xz data: the file ends too early");
    default:
      throw Error(path + ": damaged xz data");
  }
}

}  // namespace

std::string CompressXz(std::string_view text) {
  Coder encoder(text);
  if (lzma_easy_encoder(encoder.get(), 6U | LZMA_PRESET_EXTREME, LZMA_CHECK_CRC64) != LZMA_OK) {
    throw SystemError("liblzma cannot start to compress");
  }
  std::string bytes;
  lzma_ret code = LZMA_OK;
  while (code == LZMA_OK) {
    code = encoder.Continue(bytes);
  }
  if (code != LZMA_STREAM_END) {
    throw SystemError("liblzma cannot compress " + std::to_string(text.size()) + " bytes");
  }
  return bytes;
}

std::string DecompressXz(std::string_view bytes, const std::string& path) {
  // liblzma itself takes anything shorter than its header for a file that is cut.
  if (bytes.empty() || !kMagic.starts_with(bytes.substr(0, kMagic.size()))) {
    FailOnCode(LZMA_FORMAT_ERROR, path);
  }
  Coder decoder(bytes);
  const auto most = static_cast<std::uint64_t>(kMemory.count());
  if (lzma_stream_decoder(decoder.get(), most, LZMA_CONCATENATED) != LZMA_OK) {
    throw SystemError("liblzma cannot start to decompress");
  }
  std::string text;
  lzma_ret code = LZMA_OK;
  while (code == LZMA_OK) {
    code = decoder.Continue(text);
    if (static_cast<std::int64_t>(text.size()) > kLargestInput.count()) {
      throw Error(path + ": larger than " + FormatBytes(kLargestInput) +
                  " uncompressed, the most that is read");
    }
  }
  if (code != LZMA_STREAM_END) {
    FailOnCode(code, path);
  }
  return text;
}

}  // namespace dcsim
