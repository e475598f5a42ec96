#include "tools/dc_run/cluster_yaml.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <set>

#include "model/base/text.h"

namespace dcsim {
namespace {

/// "4102 GB/s".
std::string Rate(BytesPerSecond rate) {
  return std::to_string(rate.count() / 1'000'000'000) + " GB/s";
}

std::string HostText(const CalibrationResult& result) {
  const exec::CollectiveHostSample& collective = result.collective_host;
  return "host:\n  view: " + PrintNs(result.host.view) +
         "\n  launch: " + PrintNs(result.host.launch) +
         "\n  collective: " + PrintNs(collective.collective) +
         "\n  grouped: " + PrintNs(collective.grouped) + "\n  copy: " + PrintNs(collective.copy) +
         "\n  event: " + PrintNs(result.host.event) +
         "\n  synchronize: " + PrintNs(result.host.synchronize) +
         "\n  segment: " + PrintNs(result.host.segment) +
         "\n  record: " + PrintNs(result.host.record) +
         "\n  take_back: " + PrintNs(result.host.take_back) +
         (result.host.launch_queue == 0
              ? ""
              : "\n  launch_queue: " + std::to_string(result.host.launch_queue)) +
         "\n  source: measured, medians\n";
}

double ShareOf(BytesPerSecond part, BytesPerSecond whole) {
  return std::min(1.0, static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

/// What copies reach while the other direction copies, too.
std::string BothWaysText(const exec::HostCopySample& copies) {
  return "host_both_ways: {offload: " +
         PrintShare(ShareOf(copies.offload_beside_reload, copies.offload)) +
         ", reload: " + PrintShare(ShareOf(copies.reload_beside_offload, copies.reload)) +
         "}  # share of a copy's rate that is left while others go the other way\n";
}

std::string PatternText(const CalibrationResult& result) {
  std::string text = "memory_patterns:        # bytes read plus written, on 500 MB of bfloat16\n";
  for (const exec::MemorySample& sample : result.memory) {
    text += "  " + std::string(MemoryPatternName(sample.pattern)) + ": " + Rate(sample.bandwidth) +
            "\n";
  }
  text += "  offload: " + Rate(result.host_copies.offload) + "        # all GPUs at once\n" +
          "  reload: " + Rate(result.host_copies.reload) + "\n";
  return text;
}

/// Ring parameters from the all-gather's smallest and largest sizes.
std::string LinkText(const std::vector<exec::CollectiveSample>& samples, int gpus) {
  const exec::CollectiveSample* smallest = nullptr;
  const exec::CollectiveSample* largest = nullptr;
  for (const exec::CollectiveSample& sample : samples) {
    if (sample.kind == CollectiveKind::kAllGather && sample.calls == 1 && !sample.unaligned) {
      smallest = smallest == nullptr ? &sample : smallest;
      largest = &sample;
    }
  }
  if (largest == nullptr) {
    return "intra_node: {bus_bandwidth: 345 GB/s, latency: 6.6 us, hop_latency: 0.6 us}  "
           "# one GPU: not measured\n";
  }
  const double wire = static_cast<double>(largest->payload.count()) * (gpus - 1) / gpus;
  const BytesPerSecond bandwidth(
      static_cast<std::int64_t>(wire / static_cast<double>(largest->time.ns()) * 1e9));
  return "intra_node:             # for sizes and numbers of ranks that no table covers\n"
         "  bus_bandwidth: " +
         Rate(bandwidth) + "\n  latency: " + PrintNs(smallest->time) +
         "\n  hop_latency: 0 ns     # within the latency\n";
}

std::string TableText(const std::vector<exec::CollectiveSample>& samples,
                      CollectiveKind kind,
                      int calls,
                      int gpus) {
  std::string points;
  for (const exec::CollectiveSample& sample : samples) {
    if (sample.calls == calls && sample.kind == kind && !sample.unaligned) {
      points += "      - [" + PrintBytes(sample.payload) + ", " + PrintNs(sample.time) + "]" +
                "  # spread " + PrintNs(sample.spread) + ", " + std::to_string(sample.ctas) +
                " CTAs\n";
    }
  }
  return points.empty() ? ""
                        : "  - kind: " + std::string(CollectiveKindName(kind)) +
                              "\n    ranks: " + std::to_string(gpus) +
                              (calls == 1 ? "" : "\n    calls: " + std::to_string(calls)) +
                              "\n    points:\n" + points;
}

/// What unaligned tensors cost, from the same payload with and without.
std::string UnalignedText(const std::vector<exec::CollectiveSample>& samples) {
  std::string text;
  for (const exec::CollectiveSample& slow : samples) {
    for (const exec::CollectiveSample& fast : samples) {
      if (slow.unaligned && !fast.unaligned && fast.kind == slow.kind && fast.calls == slow.calls &&
          fast.payload == slow.payload) {
        const double times = std::max(
            1.0, static_cast<double>(slow.time.ns()) / static_cast<double>(fast.time.ns()));
        text += (text.empty() ? "" : ", ") + std::string(CollectiveKindName(slow.kind)) + ": " +
                PrintShare(times);
      }
    }
  }
  return text.empty() ? ""
                      : "unaligned_collectives: {" + text +
                            "}  # times as long, 256 MiB from 4 bytes behind a multiple of 16\n";
}

/// Empty where one GPU had nobody to read from.
std::string CopyEnginesText(const CalibrationResult& result, int gpus) {
  if (!result.copy_engines) {
    return "";
  }
  const exec::CopyEngineSample& sample = *result.copy_engines;
  BytesPerSecond copy;
  for (const exec::MemorySample& pattern : result.memory) {
    copy = pattern.pattern == MemoryPattern::kCopy ? pattern.bandwidth : copy;
  }
  const CopyEngines fit = exec::FitCopyEngines(sample, gpus, copy);
  const std::string of_large = ", " + PrintBytes(sample.payload) + ": ";
  return "copy_engines:           # gathers that read the other GPUs' memory\n  start: " +
         PrintNs(fit.start) + "  # a small tensor: " + PrintNs(sample.one) +
         "\n  copy: " + PrintNs(fit.copy) + "  # " + std::to_string(sample.tensors) +
         " of them: " + PrintNs(sample.many) + "\n  rate: " + Rate(fit.rate) + "  # the shortest" +
         of_large + PrintNs(sample.least) + "\n  crowding: " + PrintShare(fit.crowding) +
         "  # the median" + of_large + PrintNs(sample.median) + "\n";
}

std::string ChannelsText(const std::vector<exec::CollectiveSample>& samples) {
  std::int64_t most = 0;
  for (const exec::CollectiveSample& sample : samples) {
    most = std::max<std::int64_t>(most, sample.ctas);
  }
  return most == 0 ? ""
                   : "collective_channels: " + std::to_string(most) +
                         "  # thread blocks of NCCL's large collectives\n";
}

std::string CollectivesText(const std::vector<exec::CollectiveSample>& samples, int gpus) {
  std::string text =
      "collectives:            # [full tensor, median from the last rank's start to the last "
      "end]\n";
  std::set<int> calls;
  for (const exec::CollectiveSample& sample : samples) {
    calls.insert(sample.calls);
  }
  for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
    for (const int of_group : calls) {
      text += TableText(samples, static_cast<CollectiveKind>(kind), of_group, gpus);
    }
  }
  return text + (samples.empty() ? "  []\n" : "");
}

}  // namespace

std::string PrintNs(Duration time) {
  return std::to_string(time.ns()) + " ns";
}

std::string PrintShare(double share, int decimals) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, share);
  return text.data();
}

std::string PrintClusterYaml(const CalibrationResult& result,
                             int gpus,
                             const std::string& gpu_file,
                             const std::string& command) {
  const std::string gpu = std::filesystem::path(gpu_file).stem().string();
  return "# Made by: " + command + "\nformat: dc-cluster/1\nname: " + gpu + "-" +
         std::to_string(gpus) + "\nnodes: 1\ngpus_per_node: " + std::to_string(gpus) +
         "\ngpu: " + gpu_file + "\n" + HostText(result) + PatternText(result) +
         BothWaysText(result.host_copies) + LinkText(result.collectives, gpus) +
         "measured: >-\n  " + result.machine.dump() + "\n  " + result.versions.dump() + " " +
         result.date + "\n" + UnalignedText(result.collectives) + CopyEnginesText(result, gpus) +
         ChannelsText(result.collectives) + CollectivesText(result.collectives, gpus);
}

}  // namespace dcsim
