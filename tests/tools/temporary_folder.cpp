#include "tests/tools/temporary_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "model/base/error.h"

namespace dcsim {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : path_(fs::temp_directory_path().string() + "/dcsim-XXXXXX") {
  DCSIM_CHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace dcsim
