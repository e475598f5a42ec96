#include "exec/device/power_meter.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <thread>

#include "exec/device/cuda_call.h"

namespace dcsim::exec {

/// The four calls of NVML that are needed, declared as in nvml.h, which torch's wheel lacks.
class PowerMeter::Nvml {
 public:
  explicit Nvml(int device) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    std::array<char, 32> bus{};
    DCSIM_CUDA(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device));
    const auto init = Find<int (*)()>("nvmlInit_v2");
    const auto by_bus = Find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    clock_ = Find<decltype(clock_)>("nvmlDeviceGetClockInfo");
    energy_ = Find<decltype(energy_)>("nvmlDeviceGetTotalEnergyConsumption");
    works_ = init != nullptr && by_bus != nullptr && clock_ != nullptr && energy_ != nullptr &&
             init() == 0 && by_bus(bus.data(), &handle_) == 0;
  }
  ~Nvml() {
    if (library_ != nullptr) {
      dlclose(library_);
    }
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool works() const { return works_; }

  /// 0 when the driver does not say.
  unsigned SmClockMhz() const {
    constexpr unsigned kSmClock = 1;  // NVML_CLOCK_SM
    unsigned mhz = 0;
    return clock_(handle_, kSmClock, &mhz) == 0 ? mhz : 0;
  }
  /// Since the driver was loaded; 0 when it does not say.
  unsigned long long Millijoules() const {
    unsigned long long energy = 0;
    return energy_(handle_, &energy) == 0 ? energy : 0;
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
  void* handle_ = nullptr;
  int (*clock_)(void*, unsigned, unsigned*) = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
  bool works_ = false;
};

/// Adds up clocks from its start until it is ended.
class PowerMeter::Sampler {
 public:
  explicit Sampler(const Nvml& nvml)
      : nvml_(nvml),
        energy_(nvml.Millijoules()),
        thread_([this] { Run(); }) {}

  std::optional<PowerReading> End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    woken_.notify_one();
    thread_.join();
    const auto energy = nvml_.Millijoules();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    if (samples_ == 0) {
      return std::nullopt;
    }
    constexpr double kMillijoulesAJoule = 1000;
    const auto used = energy > energy_ ? energy - energy_ : 0;
    const double joules = static_cast<double>(used) / kMillijoulesAJoule;
    return PowerReading{clocks_ / static_cast<double>(samples_), joules / seconds.count()};
  }

 private:
  void Run() {
    constexpr auto kInterval = std::chrono::milliseconds(100);
    std::unique_lock lock(mutex_);
    do {
      if (const unsigned mhz = nvml_.SmClockMhz(); mhz != 0) {
        clocks_ += mhz;
        ++samples_;
      }
    } while (!woken_.wait_for(lock, kInterval, [this] { return ended_; }));
  }

  const Nvml& nvml_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  unsigned long long energy_;
  double clocks_ = 0;
  std::int64_t samples_ = 0;
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::thread thread_;  // last: it reads the others
};

PowerMeter::PowerMeter(int device) : nvml_(std::make_unique<Nvml>(device)) {}

PowerMeter::~PowerMeter() {
  Stop();
}

void PowerMeter::Start() {
  Stop();
  if (nvml_->works()) {
    sampler_ = std::make_unique<Sampler>(*nvml_);
  }
}

std::optional<PowerReading> PowerMeter::Stop() {
  if (sampler_ == nullptr) {
    return std::nullopt;
  }
  const auto reading = sampler_->End();
  sampler_.reset();
  return reading;
}

}  // namespace dcsim::exec
