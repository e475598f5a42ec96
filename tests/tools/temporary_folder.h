#pragma once

#include <string>
#include <vector>

namespace dcsim {

/// A new, empty folder that is gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Names of everything in it, sorted.
  std::vector<std::string> Names() const;

 private:
  std::string path_;
};

}  // namespace dcsim
