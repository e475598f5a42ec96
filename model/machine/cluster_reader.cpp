#include "model/base/scaled.h"
#include "model/ir/name_reader.h"
#include "model/machine/cluster.h"
#include "model/machine/gpu_reader.h"
#include "model/machine/machine_fields.h"

namespace dcsim {
namespace {

// Where the file does not say: CUDA's own, as measured on an H200 (docs/design/costs/host.md).
constexpr int kLaunchQueue = 1022;
// The same: host times of that machine.
constexpr Duration kView = Duration::FromUs(1);
constexpr Duration kLaunch = Duration::FromNs(4'900);
constexpr Duration kCollective = Duration::FromNs(8'400);
constexpr Duration kEvent = Duration::FromUs(1);
constexpr Duration kSynchronize = Duration::FromUs(10);
constexpr Duration kSegment = Duration::FromUs(200);
// The same, over a launch.
constexpr double kRecordOfLaunch = 0.08;
constexpr double kTakeBackOfLaunch = 0.24;
// The same, of first steps: medians of 78 on two and four H200s (docs/design/memory.md, When events
// pass).
constexpr Duration kFirstCall = Duration::FromUs(13'000);
/// Of calls from Python. Source: a step of llama-3.2-1b under DeepSpeed's ZeRO-1 on one H200, 2.1,
/// 1.3 and 380 launches of 6.66 us there (docs/lab/deepspeed.md).
constexpr double kPythonOfLaunch = 2.1;
constexpr double kAutogradOfLaunch = 1.3;
constexpr double kGraphOfLaunch = 380;
/// The same of an eager ZeRO-3 step on another H200, 75 launches of 7.01 us.
constexpr double kHooksOfLaunch = 75;
constexpr Duration kFirstCollective = Duration::FromUs(80'000);

/// A time of the host that has a value where the file has none.
Duration HostTime(ObjectReader& object, std::string_view key, Duration otherwise) {
  object.Optional(key, ReadTime, otherwise);
  return otherwise;
}

HostCosts ReadHostCosts(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  HostCosts host;
  host.view = HostTime(object, "view", kView);
  host.launch = HostTime(object, "launch", kLaunch);
  host.collective = HostTime(object, "collective", kCollective);
  host.grouped = HostTime(object, "grouped", host.collective);
  host.copy = HostTime(object, "copy", host.launch);
  host.event = HostTime(object, "event", kEvent);
  host.synchronize = HostTime(object, "synchronize", kSynchronize);
  host.segment = HostTime(object, "segment", kSegment);
  host.record = HostTime(object, "record", Scaled(host.launch, kRecordOfLaunch));
  host.take_back = HostTime(object, "take_back", Scaled(host.launch, kTakeBackOfLaunch));
  host.python_operator = HostTime(object, "python_operator", Scaled(host.launch, kPythonOfLaunch));
  host.autograd_node = HostTime(object, "autograd_node", Scaled(host.launch, kAutogradOfLaunch));
  host.compiled_graph = HostTime(object, "compiled_graph", Scaled(host.launch, kGraphOfLaunch));
  host.module_hooks = HostTime(object, "module_hooks", Scaled(host.launch, kHooksOfLaunch));
  host.first_call = HostTime(object, "first_call", kFirstCall);
  host.first_collective = HostTime(object, "first_collective", kFirstCollective);
  host.launch_queue = kLaunchQueue;
  ReadOptionalCount(object, "launch_queue", host.launch_queue);
  object.Optional("source", ReadString, host.source);
  object.RejectUnknown();
  return host;
}

void ReadCommunicatorMemory(ObjectReader& object, Cluster& cluster) {
  object.OptionalObject("communicator_memory", [&](ObjectReader& fields) {
    fields.Required("first", ReadSize, cluster.communicator_memory.first);
    fields.Required("all_reduce", ReadSize, cluster.communicator_memory.all_reduce);
    fields.Required("second", ReadSize, cluster.communicator_memory.second);
  });
}

void ReadHostBothWays(ObjectReader& object, Cluster& cluster) {
  object.OptionalObject("host_both_ways", [&](ObjectReader& fields) {
    ReadShare(fields, "offload", cluster.host_both_ways.offload);
    ReadShare(fields, "reload", cluster.host_both_ways.reload);
  });
}

void ReadCopyEngines(ObjectReader& object, Cluster& cluster) {
  object.OptionalObject("copy_engines", [&](ObjectReader& fields) {
    CopyEngines& engines = cluster.copy_engines.emplace();
    fields.Required("start", ReadTime, engines.start);
    fields.Required("copy", ReadTime, engines.copy);
    ReadRate(fields, "rate", engines.rate);
    if (fields.Optional("crowding", ReadNumber, engines.crowding) &&
        !(engines.crowding >= 0 && engines.crowding <= 10)) {
      fields.faults().Add(fields.At("crowding"), "expected a share, 0 to 10");
    }
  });
}

void ReadUnalignedCollectives(ObjectReader& object, Cluster& cluster) {
  object.OptionalObject("unaligned_collectives", [&](ObjectReader& fields) {
    for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
      const std::string_view name = CollectiveKindNames()[kind];
      double& times = cluster.unaligned_collectives[kind];
      if (fields.Required(name, ReadNumber, times) && !(times >= 1 && times <= 10)) {
        fields.faults().Add(fields.At(name), "expected how many times as long, 1 to 10");
      }
    }
  });
}

void ReadShiftedShardGathers(ObjectReader& object, Cluster& cluster) {
  object.OptionalObject("shifted_shard_gathers", [&](ObjectReader& fields) {
    ShiftedShardGathers& gathers = cluster.shifted_shard_gathers.emplace();
    fields.Required("above", ReadSize, gathers.above);
    fields.Required("start", ReadTime, gathers.start);
    if (fields.Required("times", ReadNumber, gathers.times) &&
        !(gathers.times >= 1 && gathers.times <= 10)) {
      fields.faults().Add(fields.At("times"), "expected how many times as long, 1 to 10");
    }
  });
}

Link ReadLink(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  Link link;
  ReadRate(object, "bus_bandwidth", link.bus_bandwidth);
  object.Required("latency", ReadTime, link.latency);
  object.Required("hop_latency", ReadTime, link.hop_latency);
  object.RejectUnknown();
  return link;
}

void ReadPoint(const Json& value, const Path& path, Faults& faults, CollectiveTable& table) {
  if (!value.is_array() || value.size() != 2) {
    faults.Add(path, "expected a pair such as [16 MiB, 55.3 us]");
    return;
  }
  const auto payload = ReadSize(value[0], Path(path, std::size_t{0}), faults);
  const auto time = ReadLongTime(value[1], Path(path, std::size_t{1}), faults);
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
  ReadCount(object, "ranks", table.ranks);
  ReadOptionalCount(object, "nodes", table.nodes);
  ReadOptionalCount(object, "calls", table.calls);
  if (table.nodes > table.ranks && table.ranks > 0) {
    faults.Add(object.At("nodes"), "expected a node for each rank at most");
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
  const Json* list = object.FindArray("collectives");
  const Path path = object.At("collectives");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Path here(path, i);
    CollectiveTable table = ReadTable((*list)[i], here, object.faults());
    for (const CollectiveTable& other : cluster.collectives) {
      if (other.kind == table.kind && other.ranks == table.ranks && other.nodes == table.nodes &&
          other.calls == table.calls) {
        object.faults().Add(here, "a second table of this kind, number of ranks, nodes and calls");
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
    if (ReadOptionalRate(fields, MemoryPatternNames()[i], entry.rate)) {
      cluster.memory_patterns.push_back(entry);
    }
  }
  fields.RejectUnknown();
}

/// One number of the slowest GPU, from 1 to `most`.
void ReadRatio(ObjectReader& object,
               std::string_view key,
               double least,
               int most,
               const std::string& expected,
               double& target) {
  if (object.Optional(key, ReadNumber, target) && !(target >= least && target <= most)) {
    object.faults().Add(object.At(key), expected + ", from " + (least < 1 ? "0.1" : "1") + " to " +
                                            std::to_string(most));
  }
}

void ReadSlowdowns(ObjectReader& object, Cluster& cluster) {
  constexpr int kMostTimes = 100;
  constexpr int kMostPower = 10;
  constexpr double kLeastSlowdown = 0.1;
  ReadRatio(object, "straggler", 1, kMostTimes,
            "expected how many times as long one rank's kernels take", cluster.straggler);
  ReadRatio(object, "straggler_power", 1, kMostPower,
            "expected how many times the profiled GPU's energy one GPU needs",
            cluster.straggler_power);
  ReadRatio(object, "host_slowdown", kLeastSlowdown, kMostTimes,
            "expected how many times as long the host's calls take", cluster.host_slowdown);
}

/// Behind the GPU and its power model.
void ReadPowerLimit(ObjectReader& object, Cluster& cluster) {
  double limit = 0;
  if (!object.Optional("power_limit_watts", ReadNumber, limit)) {
    return;
  }
  const auto& power = cluster.gpu.power;
  if (!power) {
    object.faults().Add(object.At("power_limit_watts"),
                        "the GPU file has no power, so what a limit does is not known");
  } else if (!(limit > power->idle_watts && limit <= power->limit_watts)) {
    object.faults().Add(object.At("power_limit_watts"),
                        "expected more than the GPU file's power.idle_watts and at most its "
                        "power.limit_watts");
  }
  cluster.power_limit_watts = limit;
}

}  // namespace

Cluster ReadCluster(const Json& document,
                    const Locator& locate,
                    const KernelRatesReader& read_gpu) {
  RequireFormat(document, "dc-cluster/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(document, root, faults);
  Cluster cluster;
  object.Require("format");
  object.Required("name", ReadName, cluster.name);
  ReadCount(object, "nodes", cluster.nodes);
  ReadCount(object, "gpus_per_node", cluster.gpus_per_node);
  if (std::int64_t{cluster.nodes} * cluster.gpus_per_node > kMostCount) {
    faults.Add(object.At("nodes"), "expected at most 1000000 GPUs on all nodes");
  }
  if (const Json* gpu = object.Require("gpu")) {
    cluster.gpu = ReadGpu(*gpu, object.At("gpu"), faults, read_gpu);
  }
  const Json* host = object.Find("host");
  cluster.host = ReadHostCosts(host == nullptr ? Json::object() : *host, object.At("host"), faults);
  ReadCommunicatorMemory(object, cluster);
  if (Bytes pinned; object.Optional("pinned_memory", ReadSize, pinned)) {
    cluster.pinned_memory = pinned;
  }
  ReadPatterns(object, cluster);
  ReadHostBothWays(object, cluster);
  ReadUnalignedCollectives(object, cluster);
  ReadShiftedShardGathers(object, cluster);
  ReadCopyEngines(object, cluster);
  ReadOptionalCount(object, "collective_channels", cluster.collective_channels);
  if (const Json* link = object.Require("intra_node")) {
    cluster.intra_node = ReadLink(*link, object.At("intra_node"), faults);
  }
  if (const Json* link = object.Find("inter_node")) {
    cluster.inter_node = ReadLink(*link, object.At("inter_node"), faults);
  } else if (cluster.nodes > 1) {
    faults.Add(root, "key 'inter_node' is missing; a cluster of several nodes needs it");
  }
  ReadSlowdowns(object, cluster);
  ReadPowerLimit(object, cluster);
  object.Optional("measured", ReadString, cluster.measured);
  ReadTables(object, cluster);
  object.RejectUnknown();
  faults.ThrowIfAny();
  cluster.document = document;
  return cluster;
}

}  // namespace dcsim
