#pragma once

#include <string>

namespace dcsim {

/// The file that `name` means: itself where it exists or names a folder or an ending, else
/// configs/`kind`/`name`.yaml of the working folder or of a folder above the program
/// (of the Python module: above the module), the nearest
/// first. Throws Error with the nearest of those names, or all, where none has such a file.
///
///   kind   "clusters", "gpus" or "plans"
///   what   it is, for the error: "cluster file"
std::string FindConfig(const std::string& name, const std::string& kind, const std::string& what);

/// ", did you mean 'x'?" for the name nearest to a missing file's in its folder, or nothing. Of
/// names that differ in numbers alone the nearest numbers count: h200-16 is nearer to h200-8 than
/// to h200-1. An ending that was left out does not.
std::string DidYouMeanFile(const std::string& path);

}  // namespace dcsim
