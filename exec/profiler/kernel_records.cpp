#include "exec/profiler/kernel_records.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cupti.h>
#include <mutex>
#include <span>
#include <unordered_map>

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
constexpr std::size_t kAlignment = 8;

constexpr std::array<CUpti_ActivityKind, 7> kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY2,
                                                      CUPTI_ACTIVITY_KIND_MEMSET,
                                                      CUPTI_ACTIVITY_KIND_RUNTIME,
                                                      CUPTI_ACTIVITY_KIND_DRIVER,
                                                      CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
constexpr std::size_t kKindsOfKernels = 4;  // the first of them; the others carry labels

std::span<const CUpti_ActivityKind> Kinds(KernelRecorder::Labels labels) {
  const std::span<const CUpti_ActivityKind> kinds(kKinds);
  return labels == KernelRecorder::Labels::kNone ? kinds.first(kKindsOfKernels) : kinds;
}

void CheckCupti(CUptiResult code, const char* call) {
  if (code != CUPTI_SUCCESS) {
    const char* text = nullptr;
    cuptiGetResultString(code, &text);
    throw SystemError(std::string(call) + ": code " + std::to_string(code) + " (" +
                      (text == nullptr ? "unknown" : text) + ")");
  }
}

/// What CUPTI's thread has delivered; the one place where it meets the program.
struct Delivered {
  std::mutex mutex;
  std::vector<KernelRecord> records;
  std::vector<std::uint32_t> correlations;                  // of each record
  std::unordered_map<std::uint32_t, std::uint64_t> labels;  // by correlation

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex);
    records.clear();
    correlations.clear();
    labels.clear();
  }
};

/// CUPTI's callbacks take no argument of ours, so this has to be found from anywhere.
Delivered& Box() {
  static Delivered box;
  return box;
}

void AddKernel(Delivered& box, const CUpti_ActivityKernel10& kernel) {
  KernelRecord record;
  record.name = kernel.name == nullptr ? "" : kernel.name;
  record.start_ns = kernel.start;
  record.end_ns = kernel.end;
  record.stream = kernel.streamId;
  record.ctas = std::int64_t{kernel.gridX} * kernel.gridY * kernel.gridZ;
  record.threads = std::int64_t{kernel.blockX} * kernel.blockY * kernel.blockZ;
  record.shared_memory = std::int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory;
  box.records.push_back(std::move(record));
  box.correlations.push_back(kernel.correlationId);
}

template <typename Activity>
void AddTransfer(Delivered& box, const Activity& activity, const char* name) {
  KernelRecord record;
  record.name = name;
  record.start_ns = activity.start;
  record.end_ns = activity.end;
  record.stream = activity.streamId;
  box.records.push_back(std::move(record));
  box.correlations.push_back(activity.correlationId);
}

void AddRecord(Delivered& box, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      AddKernel(box, *reinterpret_cast<const CUpti_ActivityKernel10*>(record));
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      AddTransfer(box, *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record), "memcpy");
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      AddTransfer(box, *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record), "memcpy peer");
      return;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      AddTransfer(box, *reinterpret_cast<const CUpti_ActivityMemset4*>(record), "memset");
      return;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      box.labels[link.correlationId] = link.externalId;
      return;
    }
    default:
      return;  // the runtime's and driver's calls, which carry the correlations
  }
}

void CUPTIAPI ProvideBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI
TakeBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Delivered& box = Box();
  const std::lock_guard<std::mutex> lock(box.mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    AddRecord(box, record);
  }
  std::free(buffer);
}

}  // namespace

KernelRecorder::KernelRecorder(Labels labels) : labels_(labels) {
  Box().Clear();  // what an earlier recorder's last kernels left behind
  CheckCupti(cuptiActivityRegisterCallbacks(ProvideBuffer, TakeBuffer),
             "cuptiActivityRegisterCallbacks");
  for (const CUpti_ActivityKind kind : Kinds(labels_)) {
    CheckCupti(cuptiActivityEnable(kind), "cuptiActivityEnable");
  }
}

KernelRecorder::~KernelRecorder() {
  for (const CUpti_ActivityKind kind : Kinds(labels_)) {
    cuptiActivityDisable(kind);
  }
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

KernelRecorder::Label::Label(std::uint64_t label) {
  cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, label);
}

KernelRecorder::Label::~Label() {
  std::uint64_t ended = 0;
  cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &ended);
}

std::vector<KernelRecord> KernelRecorder::Take() {
  CheckCupti(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  Delivered& box = Box();
  const std::lock_guard<std::mutex> lock(box.mutex);
  for (std::size_t i = 0; i < box.records.size(); ++i) {
    const auto label = box.labels.find(box.correlations[i]);
    box.records[i].label = label == box.labels.end() ? KernelRecord::kNoLabel : label->second;
  }
  std::vector<KernelRecord> records = std::move(box.records);
  box.records.clear();
  box.correlations.clear();
  box.labels.clear();
  std::stable_sort(
      records.begin(), records.end(),
      [](const KernelRecord& a, const KernelRecord& b) { return a.start_ns < b.start_ns; });
  return records;
}

}  // namespace dcsim::exec
