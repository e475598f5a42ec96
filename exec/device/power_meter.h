#pragma once

#include <memory>
#include <optional>

namespace dcsim::exec {

/// SM clock and power of one GPU, means over the time between Start and Stop.
struct PowerReading {
  double sm_clock_mhz = 0;
  double watts = 0;  // from the driver's energy counter, which advances every 20 to 100 ms; 0: none
};

/// Reads clock and energy of a GPU through NVML (libnvidia-ml, loaded at run time) on a thread of
/// its own, every 100 ms: each read takes the driver's locks, which launches need, too. Without
/// NVML there are no readings.
class PowerMeter {
 public:
  /// Throws SystemError when the device does not exist.
  explicit PowerMeter(int device);
  ~PowerMeter();
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  void Start();
  /// Nothing without NVML, and when the time was too short for a sample.
  std::optional<PowerReading> Stop();

 private:
  class Nvml;
  class Sampler;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace dcsim::exec
