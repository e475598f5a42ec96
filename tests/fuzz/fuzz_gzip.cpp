// Any bytes as a file in .gz: text that can be written and read again, or an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/base/error.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

/// A folder in memory where the system has one, gone when the process ends.
class Scratch {
 public:
  Scratch() {
    path_ = std::string(std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp") +
            "/dcsim-fuzz-XXXXXX";
    DCSIM_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void FuzzGzipFile(const char* data, std::size_t size) {
  static const Scratch scratch;
  static const std::string path = scratch / "fuzz.gz";
  std::ofstream(path, std::ios::binary).write(data, static_cast<std::streamsize>(size));
  const std::string text = ReadFile(path);
  WriteFile(path, text);
  DCSIM_CHECK(ReadFile(path) == text);
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzGzipFile(reinterpret_cast<const char*>(data), size);
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
