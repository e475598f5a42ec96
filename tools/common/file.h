#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// Files larger than this, uncompressed, are no workload, plan or cluster: a recording of a 70B
/// model has 12 MB.
inline constexpr Bytes kLargestInput = Bytes::MiB(256);

/// The whole content of a file; uncompressed when its name ends in ".gz" or ".xz". Throws Error
/// when it is missing, a directory, a link that leads nowhere, a pipe to which nobody writes,
/// larger than `largest`, or no valid gzip or xz; SystemError when reading fails.
std::string ReadFile(const std::string& path, Bytes largest = kLargestInput);

/// Writes a whole file: to a temporary beside it first, then renamed, so that no reader ever sees a
/// part; devices and pipes are written directly. Compressed (without a time stamp) when the name
/// ends in ".gz" or ".xz"; "-" is standard output.
/// Throws SystemError naming the file and the reason.
void WriteFile(const std::string& path, std::string_view content);

/// The file that an option names for a result; empty: none, "-": standard output.
struct OutputOption {
  std::string flag;
  std::string path;
};

/// Asked before long work whose results go there. Throws Error when a path is a folder or lies in
/// none, is read-only, is a file that this process has read, or stands for two options; SystemError
/// when its folder takes no files. Files that are written after such a check may still fail, with
/// a full disk.
void CheckOutputs(const std::vector<OutputOption>& outputs);

/// Removes a file, if there is one. Throws SystemError.
void RemoveFile(const std::string& path);

/// Makes a folder, and those around it, where there is none. Throws SystemError.
void MakeFolder(const std::string& path);

/// Asked before long work whose results go to `folder`, the value of option `flag`. Throws Error
/// unless there is one.
void RequireFolder(std::string_view flag, const std::string& folder);

/// Throws Error for a link that leads nowhere: what it should lead to is missing, not left out.
bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);

}  // namespace dcsim
