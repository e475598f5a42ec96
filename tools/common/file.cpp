#include "tools/common/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <unistd.h>
#include <zlib.h>

#include "model/base/error.h"
#include "model/base/text.h"

namespace dcsim {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

struct GzClose {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzHandle = std::unique_ptr<std::remove_pointer_t<gzFile>, GzClose>;

[[noreturn]] void FailOnFile(const std::string& action, const std::string& path, int code) {
  throw SystemError("cannot " + action + " " + path + ": " + std::strerror(code));
}

void RejectMissing(const std::string& path) {
  if (IsDirectory(path)) {
    throw Error(path + ": expected a file, found a directory");
  }
  if (!FileExists(path)) {
    throw Error(path + ": no such file");
  }
}

/// Whether the file begins with gzip's two magic bytes.
bool IsGzip(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  return file != nullptr && std::fgetc(file.get()) == 0x1f && std::fgetc(file.get()) == 0x8b;
}

std::string Compress(std::string_view content) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw SystemError("zlib cannot start to compress");
  }
  std::string out;
  int code = Z_OK;
  for (std::size_t taken = 0; code == Z_OK; taken += kChunk) {  // zlib counts in 32 bits
    const std::string_view part = content.substr(std::min(taken, content.size()), kChunk);
    // zlib takes non-const input and does not write to it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream.avail_in = static_cast<uInt>(part.size());
    const std::size_t size = out.size();
    out.resize(size + deflateBound(&stream, kChunk));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream.avail_out = static_cast<uInt>(out.size() - size);
    const bool last = taken + kChunk >= content.size();
    code = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (code != Z_STREAM_END) {
    throw SystemError("zlib cannot compress " + std::to_string(content.size()) + " bytes");
  }
  return out;
}

/// Writes all bytes to a file opened with `flags`. Gives the error code, 0 when all went well.
int WriteAll(const std::string& path, int flags, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | flags, 0644);
  if (file < 0) {
    return errno;
  }
  int code = 0;
  while (!content.empty() && code == 0) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) {
      code = errno == EINTR ? 0 : errno;
      continue;
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::close(file) != 0 && code == 0 ? errno : code;
}

/// Devices and pipes cannot be replaced by a new file: they are written as they are.
bool IsSpecialFile(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::is_other(status);
}

void WriteStandardOutput(std::string_view content) {
  std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
  std::cout.flush();
  if (!std::cout) {
    throw SystemError("cannot write to standard output");
  }
}

}  // namespace

void RequireFolder(std::string_view flag, const std::string& folder) {
  if (!IsDirectory(folder)) {
    throw Error(std::string(flag) + " " + folder + ": no such folder; make it first");
  }
}

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw SystemError("cannot make folder " + path + ": " + error.message());
  }
}

std::string ReadFile(const std::string& path) {
  RejectMissing(path);
  if (path.ends_with(".gz") && !IsGzip(path)) {
    throw Error(path + ": not a gzip file");
  }
  const GzHandle file(gzopen(path.c_str(), "rb"));  // reads uncompressed files as they are
  if (file == nullptr) {
    FailOnFile("open", path, errno);
  }
  std::string content;
  while (true) {
    const std::size_t size = content.size();
    content.resize(size + kChunk);
    const int count = gzread(file.get(), content.data() + size, static_cast<unsigned>(kChunk));
    if (count < 0) {
      int code = 0;
      const std::string_view message = gzerror(file.get(), &code);  // "`path`: what is wrong"
      if (code == Z_ERRNO) {
        FailOnFile("read", path, errno);
      }
      const std::size_t named = message.starts_with(path + ": ") ? path.size() + 2 : 0;
      throw Error(path + ": damaged gzip data: " + std::string(message.substr(named)));
    }
    content.resize(size + static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(content.size()) > kLargestInput.count()) {
      throw Error(path + ": larger than " + FormatBytes(kLargestInput) +
                  " uncompressed, the most that is read");
    }
    if (count == 0) {
      break;
    }
  }
  // gzread takes a truncated stream for the end of the file; closing tells.
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) {
    throw Error(path + ": damaged gzip data: the file ends too early");
  }
  return content;
}

void WriteFile(const std::string& path, std::string_view content) {
  if (path == "-") {
    WriteStandardOutput(content);
    return;
  }
  const std::string compressed = path.ends_with(".gz") ? Compress(content) : std::string();
  const std::string_view bytes = path.ends_with(".gz") ? std::string_view(compressed) : content;
  const bool special = IsSpecialFile(path);
  const std::string target = special ? path : path + ".part" + std::to_string(::getpid());
  int code = WriteAll(target, special ? 0 : O_CREAT | O_TRUNC, bytes);
  if (code == 0 && !special && std::rename(target.c_str(), path.c_str()) != 0) {
    code = errno;
  }
  if (code != 0) {
    if (!special) {
      ::unlink(target.c_str());
    }
    FailOnFile("write", path, code);
  }
}

}  // namespace dcsim
