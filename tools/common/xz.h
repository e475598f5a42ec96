#pragma once

#include <string>
#include <string_view>

namespace dcsim {

/// The bytes of an .xz file that holds `text`, as `xz -6e` and Python's lzma make them. Throws
/// SystemError without memory.
std::string CompressXz(std::string_view text);

/// The text in the bytes of an .xz file, which may be several streams in a row. Throws Error, which
/// begins with `path`, when they are none, damaged, cut, hold more than kLargestInput or need more
/// than 256 MiB of memory; SystemError without memory.
std::string DecompressXz(std::string_view bytes, const std::string& path);

}  // namespace dcsim
