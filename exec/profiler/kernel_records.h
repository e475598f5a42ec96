#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dcsim::exec {

/// One kernel, copy or fill that ran on the GPU, as CUPTI saw it.
struct KernelRecord {
  std::string name;
  std::uint64_t start_ns = 0;  // CUPTI's clock, common to all streams
  std::uint64_t end_ns = 0;
  std::uint64_t label = kNoLabel;  // of the innermost Label alive at the launch
  std::uint32_t stream = 0;
  std::int64_t ctas = 0;           // thread blocks of the grid; 0 for copies and fills
  std::int64_t threads = 0;        // of a block
  std::int64_t shared_memory = 0;  // bytes of a block, static and dynamic

  static constexpr std::uint64_t kNoLabel = UINT64_MAX;
};

/// Records every kernel while it lives. One at a time in a process.
class KernelRecorder {
 public:
  /// Whether records carry labels, for which CUPTI also records every call of the runtime and of
  /// the driver, and the host is slower.
  enum class Labels : std::uint8_t { kNone, kOfLaunches };

  /// Throws SystemError when CUPTI refuses (no GPU, no permission).
  explicit KernelRecorder(Labels labels = Labels::kOfLaunches);
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  /// Launches of this thread while it lives carry `label`.
  class Label {
   public:
    explicit Label(std::uint64_t label);
    ~Label();
    Label(const Label&) = delete;
    Label& operator=(const Label&) = delete;
  };

  /// What has run since the last call, by start. The GPU must be idle.
  std::vector<KernelRecord> Take();

 private:
  Labels labels_;
};

}  // namespace dcsim::exec
