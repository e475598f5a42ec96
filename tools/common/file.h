#pragma once

#include <string>
#include <string_view>

#include "model/base/units.h"

namespace dcsim {

/// Files larger than this, uncompressed, are no workload, plan or cluster: a recording of a 70B
/// model has 12 MB.
inline constexpr Bytes kLargestInput = Bytes::MiB(256);

/// The whole content of a file; uncompressed when its name ends in ".gz". Throws Error when it is
/// missing, a directory, larger than kLargestInput, or no valid gzip; SystemError when reading
/// fails.
std::string ReadFile(const std::string& path);

/// Writes a whole file: to a temporary beside it first, then renamed, so that no reader ever sees a
/// part; devices and pipes are written directly. Compressed (without a time stamp) when the name
/// ends in ".gz"; "-" is standard output.
/// Throws SystemError naming the file and the reason.
void WriteFile(const std::string& path, std::string_view content);

/// Makes a folder, and those around it, where there is none. Throws SystemError.
void MakeFolder(const std::string& path);

/// Asked before long work whose results go to `folder`, the value of option `flag`. Throws Error
/// unless there is one.
void RequireFolder(std::string_view flag, const std::string& folder);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);

}  // namespace dcsim
