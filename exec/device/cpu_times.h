#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dcsim::exec {

/// What this machine's CPUs did since it started, all together, in the kernel's ticks.
struct CpuTimes {
  std::int64_t busy = 0;
  std::int64_t stolen = 0;  // a thread was ready and its virtual CPU was not running
};

/// The CPUs' line of /proc/stat (proc(5)); none where the text has no such line.
std::optional<CpuTimes> ParseCpuTimes(std::string_view stat);

/// Those of this machine; none where its kernel does not say.
std::optional<CpuTimes> ReadCpuTimes();

/// Of what threads asked for between two readings the share that other machines had; none where no
/// thread asked for any.
std::optional<double> StolenShare(const CpuTimes& before, const CpuTimes& after);

}  // namespace dcsim::exec
