#include <algorithm>
#include <cmath>

#include "model/cost/cluster.h"

namespace dcsim {
namespace {

void CheckPositive(ObjectReader& object, std::string_view key, double value) {
  if (object.Find(key) != nullptr && !(value > 0)) {
    object.faults().Add(object.At(key), "expected more than 0");
  }
}

void ReadCount(ObjectReader& object, std::string_view key, int& target) {
  constexpr std::int64_t kMost = 1'000'000;
  std::int64_t count = 0;
  if (!object.Required(key, ReadInteger, count)) {
    return;
  }
  if (count < 1 || count > kMost) {
    object.faults().Add(object.At(key), "expected a count from 1 to 1000000");
    return;
  }
  target = static_cast<int>(count);
}

void ReadShare(ObjectReader& object, std::string_view key, double& target) {
  if (object.Required(key, ReadNumber, target) && !(target > 0 && target <= 1)) {
    object.faults().Add(object.At(key), "expected a share above 0 and up to 1");
  }
}

void ReadRate(ObjectReader& object, std::string_view key, BytesPerSecond& target) {
  object.Required(key, ReadBytesPerSecond, target);
  CheckPositive(object, key, static_cast<double>(target.count()));
}

void ReadMatmulPeaks(ObjectReader& object, GpuSpec& gpu) {
  const Json* peaks = object.Require("matmul");
  if (peaks == nullptr) {
    return;
  }
  const Path path = object.At("matmul");
  ObjectReader fields(*peaks, path, object.faults());
  for (const std::string_view name : DTypeNames()) {
    MatmulPeak peak;
    peak.dtype = *FindDType(name);
    if (fields.Optional(name, ReadFlopsPerSecond, peak.flops_per_second)) {
      CheckPositive(fields, name, peak.flops_per_second);
      gpu.matmul.push_back(peak);
    }
  }
  fields.RejectUnknown();
}

void ReadWorkspaces(ObjectReader& object, GpuSpec& gpu) {
  const Json* list = object.RequireArray("workspaces");
  const Path path = object.At("workspaces");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto bytes = ReadBytes((*list)[i], Path(path, i), object.faults())) {
      gpu.workspaces.push_back(*bytes);
    }
  }
  object.Optional("bias_workspace", ReadBytes, gpu.bias_workspace);
}

void ReadGaps(ObjectReader& object, GpuSpec& gpu) {
  const Json* gaps = object.Find("gaps");
  if (gaps == nullptr) {
    return;
  }
  const Path path = object.At("gaps");
  ObjectReader fields(*gaps, path, object.faults());
  Duration kernel;
  if (fields.Optional("kernel", ReadDuration, kernel)) {
    gpu.gaps.kernel = kernel;
  }
  Duration step;
  if (fields.Optional("step", ReadDuration, step)) {
    gpu.gaps.step = step;
  }
  fields.Optional("collective", ReadDuration, gpu.gaps.collective);
  Duration queued;
  if (fields.Optional("queued", ReadDuration, queued)) {
    gpu.gaps.queued = queued;
  }
  std::string source;
  fields.Required("source", ReadString, source);
  fields.RejectUnknown();
}

/// A row of the contention table: {collective: 0.68, streaming: 0.95}.
void ReadContentionRow(const Json& value,
                       const Path& path,
                       Faults& faults,
                       Contention::Row& permille) {
  ObjectReader fields(value, path, faults);
  for (std::size_t beside = 0; beside < kDeviceUses; ++beside) {
    const std::string_view name = DeviceUseNames()[beside];
    double share = 1;
    if (!fields.Optional(name, ReadNumber, share)) {
      continue;
    }
    constexpr double kLeast = 0.01;
    if (!(share >= kLeast && share <= 1)) {
      faults.Add(fields.At(name), "expected a share of the undisturbed speed, 0.01 to 1");
      continue;
    }
    permille[beside] = static_cast<std::int32_t>(std::lround(share * Contention::kAlone));
  }
  fields.RejectUnknown();
}

void ReadRanksApart(ObjectReader& object, Contention& contention) {
  const Json* value = object.Find("ranks_apart");
  if (value == nullptr) {
    return;
  }
  const Path path = object.At("ranks_apart");
  ObjectReader fields(*value, path, object.faults());
  fields.Required("together", ReadDuration, contention.rank_skew);
  fields.Required("most", ReadDuration, contention.rank_drift);
  double rate = 0;
  if (fields.Required("rate", ReadNumber, rate) && !(rate >= 0 && rate <= 1)) {
    object.faults().Add(fields.At("rate"), "expected a share of the time that passes, 0 to 1");
    return;
  }
  contention.drift_permille = static_cast<int>(std::lround(rate * Contention::kAlone));
  fields.RejectUnknown();
}

void ReadContention(ObjectReader& object, GpuSpec& gpu) {
  const Json* table = object.Find("contention");
  if (table == nullptr) {
    return;
  }
  const Path path = object.At("contention");
  ObjectReader fields(*table, path, object.faults());
  for (std::size_t work = 0; work < kDeviceUses; ++work) {
    const std::string_view name = DeviceUseNames()[work];
    if (const Json* row = fields.Find(name)) {
      ReadContentionRow(*row, fields.At(name), object.faults(), gpu.contention.permille[work]);
    }
  }
  Contention& contention = gpu.contention;
  if (fields.Find("collective_multiprocessors") != nullptr) {
    ReadCount(fields, "collective_multiprocessors", contention.collective_multiprocessors);
  }
  fields.Optional("streaming_kernel", ReadDuration, contention.streaming_kernel);
  fields.Optional("collective_start", ReadDuration, contention.collective_start);
  ReadRanksApart(fields, contention);
  std::string source;
  fields.Required("source", ReadString, source);
  fields.RejectUnknown();
  contention.measured = true;
}

void ReadErrors(ObjectReader& object, GpuSpec& gpu) {
  const Json* value = object.Find("errors");
  if (value == nullptr) {
    return;
  }
  const Path path = object.At("errors");
  ObjectReader fields(*value, path, object.faults());
  PartErrors errors;
  const auto read = [&](std::string_view key, double& share) {
    if (fields.Required(key, ReadNumber, share) && !(share >= 0 && share <= 1)) {
      object.faults().Add(fields.At(key), "expected a standard deviation as a share, 0 to 1");
    }
  };
  read("ops", errors.ops);
  read("collectives", errors.collectives);
  read("contention", errors.contention);
  read("host", errors.host);
  read("host_copies", errors.host_copies);
  fields.Required("step", ReadDuration, errors.step);
  std::string source;
  fields.Required("source", ReadString, source);
  fields.RejectUnknown();
  gpu.errors = errors;
}

GpuSpec ReadGpu(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  GpuSpec gpu;
  if (const Json* format = object.Require("format"); format != nullptr && *format != "dc-gpu/1") {
    faults.Add(object.At("format"), "expected \"dc-gpu/1\"");
  }
  object.Required("name", ReadString, gpu.name);
  object.Required("memory", ReadBytes, gpu.memory);
  CheckPositive(object, "memory", static_cast<double>(gpu.memory.count()));
  object.Required("outside_allocator", ReadBytes, gpu.outside_allocator);
  ReadRate(object, "memory_bandwidth", gpu.memory_bandwidth);
  if (object.Optional("host_bandwidth", ReadBytesPerSecond, gpu.host_bandwidth)) {
    CheckPositive(object, "host_bandwidth", static_cast<double>(gpu.host_bandwidth.count()));
  }
  ReadCount(object, "multiprocessors", gpu.multiprocessors);
  ReadMatmulPeaks(object, gpu);
  ReadShare(object, "matmul_efficiency", gpu.matmul_efficiency);
  ReadShare(object, "attention_efficiency", gpu.attention_efficiency);
  ReadShare(object, "attention_backward_efficiency", gpu.attention_backward_efficiency);
  ReadShare(object, "bandwidth_efficiency", gpu.bandwidth_efficiency);
  object.Required("shortest_kernel", ReadDuration, gpu.shortest_kernel);
  ReadWorkspaces(object, gpu);
  ReadGaps(object, gpu);
  ReadContention(object, gpu);
  ReadErrors(object, gpu);
  object.Required("source", ReadString, gpu.source);
  object.RejectUnknown();
  return gpu;
}

HostCosts ReadHostCosts(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  HostCosts host;
  object.Required("view", ReadDuration, host.view);
  object.Required("launch", ReadDuration, host.launch);
  object.Required("collective", ReadDuration, host.collective);
  host.grouped = host.collective;
  object.Optional("grouped", ReadDuration, host.grouped);
  host.copy = host.launch;
  object.Optional("copy", ReadDuration, host.copy);
  object.Required("event", ReadDuration, host.event);
  object.Required("synchronize", ReadDuration, host.synchronize);
  object.Required("segment", ReadDuration, host.segment);
  if (object.Optional("launch_queue", ReadInteger, host.launch_queue)) {
    CheckPositive(object, "launch_queue", host.launch_queue);
  }
  object.Required("source", ReadString, host.source);
  object.RejectUnknown();
  return host;
}

void ReadCommunicatorMemory(ObjectReader& object, Cluster& cluster) {
  if (const Json* value = object.Find("communicator_memory")) {
    const Path path = object.At("communicator_memory");
    ObjectReader fields(*value, path, object.faults());
    fields.Required("first", ReadBytes, cluster.communicator_memory.first);
    fields.Required("all_reduce", ReadBytes, cluster.communicator_memory.all_reduce);
    fields.Required("second", ReadBytes, cluster.communicator_memory.second);
    fields.RejectUnknown();
  }
}

void ReadHostBothWays(ObjectReader& object, Cluster& cluster) {
  if (const Json* value = object.Find("host_both_ways")) {
    const Path path = object.At("host_both_ways");
    ObjectReader fields(*value, path, object.faults());
    ReadShare(fields, "offload", cluster.host_both_ways.offload);
    ReadShare(fields, "reload", cluster.host_both_ways.reload);
    fields.RejectUnknown();
  }
}

Link ReadLink(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  Link link;
  ReadRate(object, "bus_bandwidth", link.bus_bandwidth);
  object.Required("latency", ReadDuration, link.latency);
  object.Required("hop_latency", ReadDuration, link.hop_latency);
  object.RejectUnknown();
  return link;
}

void ReadPoint(const Json& value, const Path& path, Faults& faults, CollectiveTable& table) {
  if (!value.is_array() || value.size() != 2) {
    faults.Add(path, "expected a pair such as [16 MiB, 55.3 us]");
    return;
  }
  const auto payload = ReadBytes(value[0], Path(path, std::size_t{0}), faults);
  const auto time = ReadDuration(value[1], Path(path, std::size_t{1}), faults);
  if (!payload || !time) {
    return;
  }
  if (!table.points.empty() && *payload <= table.points.back().payload) {
    faults.Add(path, "sizes must ascend");
  }
  table.points.push_back({*payload, *time});
}

CollectiveTable ReadTable(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  CollectiveTable table;
  object.Require("kind");
  object.OptionalChoice("kind", CollectiveKindNames(), table.kind);
  object.OptionalChoice("engine", EngineNames(), table.engine);
  ReadCount(object, "ranks", table.ranks);
  if (object.Find("calls") != nullptr) {
    ReadCount(object, "calls", table.calls);
  }
  if (const Json* points = object.RequireArray("points")) {
    const Path here = object.At("points");
    for (std::size_t i = 0; i < points->size(); ++i) {
      ReadPoint((*points)[i], Path(here, i), faults, table);
    }
    if (points->empty()) {
      faults.Add(here, "expected at least one pair");
    }
  }
  object.RejectUnknown();
  return table;
}

void ReadTables(ObjectReader& object, Cluster& cluster) {
  const Json* list = object.RequireArray("collectives");
  const Path path = object.At("collectives");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Path here(path, i);
    CollectiveTable table = ReadTable((*list)[i], here, object.faults());
    for (const CollectiveTable& other : cluster.collectives) {
      if (other.kind == table.kind && other.engine == table.engine && other.ranks == table.ranks &&
          other.calls == table.calls) {
        object.faults().Add(here, "a second table of this kind, engine, number of ranks and calls");
      }
    }
    cluster.collectives.push_back(std::move(table));
  }
}

void ReadPatterns(ObjectReader& object, Cluster& cluster) {
  const Json* rates = object.Find("memory_patterns");
  if (rates == nullptr) {
    return;
  }
  const Path path = object.At("memory_patterns");
  ObjectReader fields(*rates, path, object.faults());
  for (std::size_t i = 0; i < MemoryPatternNames().size(); ++i) {
    PatternRate entry;
    entry.pattern = static_cast<MemoryPattern>(i);
    if (fields.Optional(MemoryPatternNames()[i], ReadBytesPerSecond, entry.rate)) {
      CheckPositive(fields, MemoryPatternNames()[i], static_cast<double>(entry.rate.count()));
      cluster.memory_patterns.push_back(entry);
    }
  }
  fields.RejectUnknown();
}

}  // namespace

double GpuSpec::MatmulFlops(DType dtype) const {
  for (const MatmulPeak& peak : matmul) {
    if (peak.dtype == dtype) {
      return peak.flops_per_second;
    }
  }
  return 0;
}

Cluster ReadCluster(const Json& document, const Locator& locate) {
  RequireFormat(document, "dc-cluster/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document, root, faults);
  Cluster cluster;
  object.Require("format");
  object.Required("name", ReadString, cluster.name);
  ReadCount(object, "nodes", cluster.nodes);
  ReadCount(object, "gpus_per_node", cluster.gpus_per_node);
  if (const Json* gpu = object.Require("gpu")) {
    cluster.gpu = ReadGpu(*gpu, object.At("gpu"), faults);
  }
  if (const Json* host = object.Require("host")) {
    cluster.host = ReadHostCosts(*host, object.At("host"), faults);
  }
  ReadCommunicatorMemory(object, cluster);
  if (Bytes pinned; object.Optional("pinned_memory", ReadBytes, pinned)) {
    cluster.pinned_memory = pinned;
  }
  ReadPatterns(object, cluster);
  ReadHostBothWays(object, cluster);
  if (const Json* link = object.Require("intra_node")) {
    cluster.intra_node = ReadLink(*link, object.At("intra_node"), faults);
  }
  if (const Json* link = object.Find("inter_node")) {
    cluster.inter_node = ReadLink(*link, object.At("inter_node"), faults);
  } else if (cluster.nodes > 1) {
    faults.Add(root, "key 'inter_node' is missing; a cluster of several nodes needs it");
  }
  constexpr double kMostStraggler = 100;
  if (object.Optional("straggler", ReadNumber, cluster.straggler) &&
      !(cluster.straggler >= 1 && cluster.straggler <= kMostStraggler)) {
    faults.Add(object.At("straggler"),
               "expected how many times as long one rank's kernels take, from 1 to 100");
  }
  object.Required("measured", ReadString, cluster.measured);
  ReadTables(object, cluster);
  object.RejectUnknown();
  faults.ThrowIfAny();
  cluster.document = document;
  return cluster;
}

}  // namespace dcsim
