#include "exec/device/cpu_times.h"

#include <fstream>
#include <sstream>
#include <string>

namespace dcsim::exec {

std::optional<CpuTimes> ParseCpuTimes(std::string_view stat) {
  std::istringstream line{std::string(stat)};
  std::string name;
  std::int64_t user = 0;
  std::int64_t nice = 0;
  std::int64_t system = 0;
  std::int64_t idle = 0;
  std::int64_t waiting = 0;
  std::int64_t interrupts = 0;
  std::int64_t soft_interrupts = 0;
  CpuTimes times;
  line >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >>
      times.stolen;
  if (!line || name != "cpu") {
    return std::nullopt;
  }
  times.busy = user + nice + system + interrupts + soft_interrupts;
  return times;
}

std::optional<CpuTimes> ReadCpuTimes() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return ParseCpuTimes(line);
}

std::optional<double> StolenShare(const CpuTimes& before, const CpuTimes& after) {
  const std::int64_t stolen = after.stolen - before.stolen;
  const std::int64_t asked = after.busy - before.busy + stolen;
  if (asked <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(stolen) / static_cast<double>(asked);
}

}  // namespace dcsim::exec
