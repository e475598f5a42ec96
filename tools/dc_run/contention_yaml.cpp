#include "tools/dc_run/contention_yaml.h"

#include "exec/calibrate/contention_fit.h"
#include "exec/calibrate/drift_fit.h"

namespace dcsim {
namespace {

std::string RowText(const Contention::Row& row) {
  std::string text;
  for (std::size_t beside = 0; beside < kDeviceUses; ++beside) {
    if (!row[beside].alone()) {
      text += (text.empty() ? "" : ", ") + std::string(DeviceUseNames()[beside]) + ": " +
              PrintShare(row[beside].share().number());
    }
  }
  return text;
}

std::string BesideMemoryText(const BesideMemory& memory) {
  std::string text = "\n  beside_memory:\n    cache: " + PrintBytes(memory.cache);
  if (memory.copy_engine > Longer()) {
    text += "\n    copy_engine: " + PrintShare(memory.copy_engine.times());
  }
  text += "\n    tables:";
  for (const BesideMemory::Table& table : memory.tables) {
    std::string points;
    for (const BesideMemory::Point& point : table.points) {
      points += (points.empty() ? "[" : ", [") + PrintBytes(point.payload) + ", " +
                PrintShare(point.longer.times()) + "]";
    }
    text += "\n      - {ranks: " + std::to_string(table.ranks) +
            ", start: " + PrintNs(table.start) + ", longer: [" + points + "]}";
  }
  return text;
}

std::string CopyText(const Contention& contention) {
  std::string text;
  if (contention.crowded_kernel.ns() > 0) {
    text += "  crowded_kernel: " + PrintNs(contention.crowded_kernel) + "\n";
  }
  if (!contention.to_host.alone()) {
    text += "  to_host: " + PrintShare(contention.to_host.share().number()) + "\n";
  }
  return text;
}

std::string SideKernelsText(const Contention& contention) {
  const auto& kernels = contention.side_kernels;
  return kernels ? "  side_kernels: {later: " + PrintNs(kernels->later) +
                       ", between: " + PrintNs(kernels->between) + "}\n"
                 : "";
}

std::string FirstText(const Contention& contention) {
  return contention.comes_first == Share()
             ? ""
             : "  comes_first: {share: " + PrintShare(contention.comes_first.number()) +
                   ", delay: " + PrintNs(contention.first_delay) + "}\n";
}

/// Of a time or a share, which `print` writes; nothing where no pair told.
template <typename Range, typename Print>
std::string RangeText(const std::string& name, const Range& range, const Print& print) {
  return range.samples == 0
             ? ""
             : ";\n    " + name + " " + print(range.least) + " to " + print(range.most) + " in " +
                   std::to_string(range.samples) + " pairs";
}

std::string RangeText(const std::string& name, const exec::TimeRange& range) {
  return RangeText(name, range, PrintNs);
}

std::string RangeText(const std::string& name, const exec::ShareRange& range) {
  return RangeText(name, range, [](double share) { return PrintShare(share); });
}

std::string SideStreamsText(const exec::SideStreamsFit& fit) {
  return RangeText("collective beside copy_engine", fit.collective_beside_reads) +
         RangeText("copy_engine beside collective", fit.reads_beside_collective) +
         RangeText("side_streaming beside copy_engine", fit.copy_beside_reads) +
         RangeText("side_streaming beside itself", fit.copies_beside_copies) +
         RangeText("to_host", fit.to_host) +
         RangeText("from the host (no parameter)", fit.from_host) +
         RangeText("crowded_kernel", fit.crowded_kernel);
}

std::string SideKernelsErrorText(const exec::ContentionFit& fit) {
  return fit.many ? RangeText("side kernels later", fit.many->later) +
                        ", mean error of what products leave them " + PrintShare(fit.many->error)
                  : "";
}

/// The longest is no result of the calibration.
std::string DriftText(const std::vector<exec::DriftSample>& samples) {
  if (samples.empty()) {
    return "";
  }
  const exec::DriftFit fit = exec::FitDrift(samples);
  constexpr int kDecimals = 4;
  return "  ranks_apart: {idle: " + PrintNs(fit.idle) +
         ", rate: " + PrintShare(fit.rate, kDecimals) + ", most: 500 us}  # most: not measured\n";
}

std::string TableText(const Contention& contention) {
  std::string text;
  for (std::size_t work = 0; work < kDeviceUses; ++work) {
    const std::string row = RowText(contention.rates[work]);
    if (!row.empty()) {
      text += "  " + std::string(DeviceUseNames()[work]) + ": {" + row + "}\n";
    }
  }
  return text +
         "  collective_multiprocessors: " + std::to_string(contention.collective_multiprocessors) +
         (contention.copy_multiprocessors > 0
              ? "\n  copy_multiprocessors: " + std::to_string(contention.copy_multiprocessors)
              : "") +
         "\n  streaming_kernel: " + PrintNs(contention.streaming_kernel) +
         (contention.beside_memory
              ? BesideMemoryText(*contention.beside_memory)
              : "\n  collective_start: " + PrintNs(contention.collective_start)) +
         "\n" + SideKernelsText(contention) + CopyText(contention) + FirstText(contention);
}

std::string SampleText(const exec::ContentionSample& sample) {
  return "  - {compute: " + sample.compute +
         ", use: " + std::string(DeviceUseNames()[static_cast<std::size_t>(sample.use)]) +
         ", tiles: " + std::to_string(sample.tiles) + ", alone: " + PrintNs(sample.compute_alone) +
         ", speed: " + PrintShare(sample.compute_speed) + ", beside: " + sample.beside +
         ", beside_alone: " + PrintNs(sample.beside_alone) +
         ", beside_time: " + PrintNs(sample.beside_time) +
         ", spread: " + PrintShare(sample.beside_spread) +
         ", start_delay: " + PrintNs(sample.start_delay) + ", skew: " + PrintNs(sample.skew) +
         ", kernels: " + std::to_string(sample.kernels) +
         (sample.peers_read ? ", peers_read: true" : "") +
         ", moving: " + PrintNs(sample.beside_moving) + ", first: " + PrintShare(sample.first) +
         ", first_delay: " + PrintNs(sample.first_delay) + "}\n";
}

}  // namespace

std::string PrintContentionYaml(const CalibrationResult& result,
                                int gpus,
                                const std::string& command) {
  const auto fit = exec::FitContention(
      result.contention, {result.machine.value("multiprocessors", 1),
                          Bytes(result.machine.value("cache_bytes", std::int64_t{0})), gpus});
  std::string text =
      "# Made by: " + command + "\ncontention:\n" + TableText(fit.contention) +
      DriftText(result.drift) + "  source: >-\n    dc-run calibrate on " + std::to_string(gpus) +
      " x " + result.machine.value("gpu", "") + ", " + result.versions.dump() + " " + result.date +
      ": " + std::to_string(result.contention.size()) +
      " pairs of kernels; mean error of the speeds of compute " + PrintShare(fit.compute_error) +
      ", of the times of what ran beside " + PrintShare(fit.beside_error) +
      SideKernelsErrorText(fit) + RangeText("comes_first delay", fit.first_delay) +
      SideStreamsText(fit.side_streams) + "\nsamples:   # eight repeats\n";
  for (const exec::ContentionSample& sample : result.contention) {
    text += SampleText(sample);
  }
  text += "drift:   # of ranks that went on together; twelve repeats\n";
  for (const exec::DriftSample& sample : result.drift) {
    text += "  - {since: " + PrintNs(sample.since) + ", apart: " + PrintNs(sample.apart) +
            ", least: " + PrintNs(sample.least) + ", most: " + PrintNs(sample.most) + "}\n";
  }
  return text;
}

}  // namespace dcsim
