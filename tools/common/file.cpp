#include "tools/common/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <zlib.h>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/xz.h"

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

/// What a file is whatever its name is: links and "./" have many names for one. The time of its
/// last change tells it from a later file that has got the number of one that is gone.
using FileId = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

FileId IdOf(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

/// The files that this process has read.
class FilesRead {
 public:
  void Add(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    files_.insert(IdOf(status));
  }
  bool Contains(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    return files_.contains(IdOf(status));
  }

 private:
  std::mutex mutex_;
  std::set<FileId> files_;
};

FilesRead& ReadSoFar() {
  static FilesRead files;
  return files;
}

/// Waits until somebody writes to a pipe, or has opened it to do so.
void AwaitWriter(int file, const std::string& path) {
  constexpr int kSlice = 50;   // ms
  constexpr int kSlices = 60;  // three seconds in all
  for (int i = 0; i < kSlices; ++i) {
    pollfd state{file, POLLIN, 0};
    char byte = 0;
    if (::poll(&state, 1, kSlice) > 0) {
      return;
    }
    const ssize_t count = ::read(file, &byte, 1);
    if (count > 0) {  // came between the two calls, and cannot be put back
      throw SystemError(path + ": a pipe that is written to just now; try again");
    }
    if (count < 0) {  // somebody has it open and writes later
      return;
    }
  }
  throw Error(path + ": a pipe to which nobody writes");
}

/// The file, open for reading. A pipe is opened without waiting for its other end.
int OpenToRead(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    FailOnFile("open", path, errno);
  }
  if (S_ISFIFO(status.st_mode)) {
    AwaitWriter(file, path);
  }
  ::fcntl(file, F_SETFL, 0);
  ReadSoFar().Add(status);
  return file;
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

/// Why nothing can be written there, whatever the disk says; empty where it can.
std::string WhyNoOutput(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !IsDirectory(parent.string())) {
    return "no such folder " + parent.string() + "; make it first";
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return "";
  }
  if (S_ISDIR(status.st_mode)) {
    return "expected a file, found a folder";
  }
  constexpr mode_t kAnybody = S_IWUSR | S_IWGRP | S_IWOTH;  // of whom root need not be one
  if ((status.st_mode & kAnybody) == 0 || ::access(path.c_str(), W_OK) != 0) {
    return "the file is read-only";
  }
  const bool replaces = S_ISREG(status.st_mode) && ReadSoFar().Contains(status);
  return replaces ? "this is one of the files that were read; name another one" : "";
}

void WriteStandardOutput(std::string_view content) {
  std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
  std::cout.flush();
  if (!std::cout) {
    throw SystemError("cannot write to standard output");
  }
}

}  // namespace

void CheckOutputs(const std::vector<OutputOption>& outputs) {
  std::map<std::string, std::string> flags;  // by path
  for (const auto& [flag, path] : outputs) {
    if (path.empty()) {
      continue;
    }
    const auto fail = [&flag = flag, &path = path](const std::string& why) {
      throw Error(std::string(flag).append(" ").append(path).append(": ").append(why));
    };
    const std::string clean = std::filesystem::path(path).lexically_normal().string();
    const auto [first, is_new] = flags.emplace(clean, flag);
    if (!is_new) {
      fail(first->second + " has the same name");
    }
    if (path == "-") {
      continue;
    }
    const std::string why = WhyNoOutput(path);
    if (!why.empty()) {
      fail(why);
    }
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!IsSpecialFile(path) && ::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) {
      FailOnFile("write", path, errno);
    }
  }
}

void RequireFolder(std::string_view flag, const std::string& folder) {
  if (!IsDirectory(folder)) {
    throw Error(std::string(flag) + " " + folder + ": no such folder; make it first");
  }
}

bool FileExists(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return true;
  }
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    throw Error(path + ": a link to " + std::filesystem::read_symlink(path, error).string() +
                ", which leads nowhere");
  }
  return false;
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

void RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    FailOnFile("remove", path, errno);
  }
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw SystemError("cannot make folder " + path + ": " + error.message());
  }
}

std::string ReadFile(const std::string& path, Bytes largest) {
  RejectMissing(path);
  const GzHandle file(gzdopen(OpenToRead(path), "rb"));  // reads uncompressed files as they are
  if (file == nullptr) {
    FailOnFile("open", path, errno);
  }
  if (path.ends_with(".gz") && gzdirect(file.get()) != 0) {
    throw Error(path + ": not a gzip file");
  }
  std::string content;
  while (true) {
    const std::size_t size = content.size();
    content.resize(size + kChunk);
    const int count = gzread(file.get(), content.data() + size, static_cast<unsigned>(kChunk));
    if (count < 0) {
      int code = 0;
      const std::string_view message = gzerror(file.get(), &code);  // "<fd:3>: what is wrong"
      if (code == Z_ERRNO) {
        FailOnFile("read", path, errno);
      }
      const std::size_t named = message.starts_with("<fd:") ? message.find(": ") + 2 : 0;
      throw Error(path + ": damaged gzip data: " + std::string(message.substr(named)));
    }
    content.resize(size + static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(content.size()) > largest.count()) {
      throw Error(path + ": larger than " + FormatBytes(largest) +
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
  return path.ends_with(".xz") ? DecompressXz(content, path) : content;
}

void WriteFile(const std::string& path, std::string_view content) {
  if (path == "-") {
    WriteStandardOutput(content);
    return;
  }
  const bool xz = path.ends_with(".xz");
  const bool gzip = path.ends_with(".gz");
  const std::string compressed = xz ? CompressXz(content) : gzip ? Compress(content) : "";
  const std::string_view bytes = xz || gzip ? std::string_view(compressed) : content;
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
