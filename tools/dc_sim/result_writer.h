#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/base/error.h"
#include "tools/common/file.h"

namespace dcsim {

/// Writes what was asked for, all of it though one of the files fails: what was found took long.
/// Throws the SystemError of the last that failed.
class ResultWriter {
 public:
  void Write(const std::string& path, const std::string& content) {
    Try([&] {
      if (!path.empty()) {
        WriteFile(path, content);
      }
    });
  }
  void Try(const std::function<void()>& write) {
    try {
      write();
    } catch (const SystemError& error) {
      failed_ = error;
    }
  }
  void ThrowIfFailed() const {
    if (failed_) {
      throw *failed_;
    }
  }

 private:
  std::optional<SystemError> failed_;
};

}  // namespace dcsim
