#include "model/machine/gpu_reader.h"

#include <array>
#include <cmath>
#include <functional>

#include "model/machine/machine_fields.h"

namespace dcsim {
namespace {

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
    const Path place(path, i);
    const auto bytes = ReadSize((*list)[i], place, object.faults());
    if (bytes && *bytes == Bytes(0)) {
      object.faults().Add(place, "expected more than 0");
    } else if (bytes) {
      gpu.workspaces.push_back(*bytes);
    }
  }
  Bytes of_biases;
  if (object.Optional("bias_workspace", ReadSize, of_biases)) {
    CheckPositive(object, "bias_workspace", static_cast<double>(of_biases.count()));
    gpu.bias_workspaces.push_back(of_biases);
  }
}

/// An optional object that may have a "source" for people; `read` takes its other keys.
void ReadSourced(ObjectReader& object,
                 std::string_view key,
                 const std::function<void(ObjectReader&)>& read) {
  object.OptionalObject(key, [&](ObjectReader& fields) {
    read(fields);
    std::string source;
    fields.Optional("source", ReadString, source);
  });
}

void ReadOptionalTime(ObjectReader& object, std::string_view key, std::optional<Duration>& target) {
  Duration time;
  if (object.Optional(key, ReadTime, time)) {
    target = time;
  }
}

void ReadGaps(ObjectReader& fields, DeviceGaps& gaps) {
  ReadOptionalTime(fields, "kernel", gaps.kernel);
  ReadOptionalTime(fields, "step", gaps.step);
  ReadOptionalTime(fields, "memory", gaps.memory);
  fields.Optional("collective", ReadTime, gaps.collective);
  ReadOptionalTime(fields, "start", gaps.start);
  ReadOptionalTime(fields, "queued", gaps.queued);
  fields.OptionalObject("waiting", [&](ObjectReader& delays) {
    for (std::size_t s = 1; s < kStreamCount; ++s) {
      delays.Optional(StreamRoleName(static_cast<StreamRole>(s)), ReadTime, gaps.waiting[s]);
    }
  });
  constexpr double kLeast = 0.1;
  constexpr double kMost = 10;
  if (fields.Optional("waiting_of_ops", ReadNumber, gaps.waiting_of_ops) &&
      !(gaps.waiting_of_ops >= kLeast && gaps.waiting_of_ops <= kMost)) {
    fields.faults().Add(fields.At("waiting_of_ops"), "expected a factor from 0.1 to 10");
  }
}

/// A share of the speed alone, where the key is there.
void ReadSpeed(ObjectReader& fields, std::string_view key, Rate& rate) {
  double share = 1;
  if (!fields.Optional(key, ReadNumber, share)) {
    return;
  }
  constexpr double kLeast = 0.01;
  if (!(share >= kLeast && share <= 1)) {
    fields.faults().Add(fields.At(key), "expected a share of the undisturbed speed, 0.01 to 1");
    return;
  }
  rate = Rate::Nearest(share);
}

/// A row of the contention table: {collective: 0.68, streaming: 0.95}.
void ReadContentionRow(const Json& value,
                       const Path& path,
                       Faults& faults,
                       Contention::Row& rates) {
  ObjectReader fields(value, path, faults);
  for (std::size_t beside = 0; beside < kDeviceUses; ++beside) {
    ReadSpeed(fields, DeviceUseNames()[beside], rates[beside]);
  }
  fields.RejectUnknown();
}

/// A share of a whole, which has to be there. `expected` completes the error.
void ReadPart(ObjectReader& fields, std::string_view key, const char* expected, Share& target) {
  double share = 0;
  if (fields.Required(key, ReadNumber, share) && !(share >= 0 && share <= 1)) {
    fields.faults().Add(fields.At(key), expected);
    return;
  }
  target = Share::Nearest(share);
}

void ReadRanksApart(ObjectReader& object, Contention& contention) {
  object.OptionalObject("ranks_apart", [&](ObjectReader& fields) {
    contention.idle_wait.emplace();
    fields.Required("idle", ReadTime, *contention.idle_wait);
    fields.Required("most", ReadTime, contention.most_apart);
    ReadPart(fields, "rate", "expected a share of the time that passes, 0 to 1", contention.drift);
  });
}

void ReadSideKernels(ObjectReader& object, Contention& contention) {
  object.OptionalObject("side_kernels", [&](ObjectReader& fields) {
    SideKernels& kernels = contention.side_kernels.emplace();
    fields.Required("later", ReadTime, kernels.later);
    fields.Required("between", ReadTime, kernels.between);
  });
}

void ReadComesFirst(ObjectReader& object, Contention& contention) {
  object.OptionalObject("comes_first", [&](ObjectReader& fields) {
    fields.Required("delay", ReadTime, contention.first_delay);
    ReadPart(fields, "share", "expected a share of all collectives, 0 to 1",
             contention.comes_first);
  });
}

std::optional<Longer> CheckLonger(double longer, const Path& path, Faults& faults) {
  if (!(longer >= 0 && longer <= Longer::kMostTimes)) {
    faults.Add(path, "expected times the time alone, 0 to 100");
    return std::nullopt;
  }
  return Longer::Nearest(longer);
}

/// [16 MiB, 1.01]: what a collective of these bytes takes longer, times its time alone.
void ReadLonger(const Json& value,
                const Path& path,
                Faults& faults,
                std::vector<BesideMemory::Point>& points) {
  if (!value.is_array() || value.size() != 2) {
    faults.Add(path, "expected a pair of bytes and times longer");
    return;
  }
  const auto payload = ReadSize(value[0], Path(path, std::size_t{0}), faults);
  const auto longer = ReadNumber(value[1], Path(path, std::size_t{1}), faults);
  if (!payload || !longer) {
    return;
  }
  const auto checked = CheckLonger(*longer, Path(path, std::size_t{1}), faults);
  if (!checked) {
    return;
  }
  if (!points.empty() && *payload <= points.back().payload) {
    faults.Add(path, "sizes must ascend");
  }
  points.push_back({*payload, *checked});
}

void ReadBesideMemory(ObjectReader& fields, BesideMemory& beside) {
  fields.Required("cache", ReadSize, beside.cache);
  double copy_engine = 0;
  if (fields.Optional("copy_engine", ReadNumber, copy_engine)) {
    beside.copy_engine =
        CheckLonger(copy_engine, fields.At("copy_engine"), fields.faults()).value_or(Longer());
  }
  const Json* tables = fields.RequireArray("tables");
  const Path here = fields.At("tables");
  for (std::size_t i = 0; tables != nullptr && i < tables->size(); ++i) {
    const Path at(here, i);
    ObjectReader entry((*tables)[i], at, fields.faults());
    BesideMemory::Table& table = beside.tables.emplace_back();
    ReadCount(entry, "ranks", table.ranks);
    entry.Required("start", ReadTime, table.start);
    const Json* points = entry.RequireArray("longer");
    const Path at_points = entry.At("longer");
    for (std::size_t j = 0; points != nullptr && j < points->size(); ++j) {
      ReadLonger((*points)[j], Path(at_points, j), fields.faults(), table.points);
    }
    if (points != nullptr && points->empty()) {
      fields.faults().Add(at_points, "expected at least one pair");
    }
    entry.RejectUnknown();
  }
  if (tables != nullptr && tables->empty()) {
    fields.faults().Add(here, "expected at least one table");
  }
}

void ReadContention(ObjectReader& fields, Contention& contention) {
  for (std::size_t work = 0; work < kDeviceUses; ++work) {
    const std::string_view name = DeviceUseNames()[work];
    if (const Json* row = fields.Find(name)) {
      ReadContentionRow(*row, fields.At(name), fields.faults(), contention.rates[work]);
    }
  }
  ReadOptionalCount(fields, "collective_multiprocessors", contention.collective_multiprocessors);
  ReadOptionalCount(fields, "copy_multiprocessors", contention.copy_multiprocessors);
  fields.Optional("streaming_kernel", ReadTime, contention.streaming_kernel);
  fields.Optional("crowded_kernel", ReadTime, contention.crowded_kernel);
  fields.Optional("collective_start", ReadTime, contention.collective_start);
  fields.OptionalObject("beside_memory", [&](ObjectReader& beside) {
    ReadBesideMemory(beside, contention.beside_memory.emplace());
  });
  ReadSideKernels(fields, contention);
  ReadSpeed(fields, "to_host", contention.to_host);
  ReadRanksApart(fields, contention);
  ReadComesFirst(fields, contention);
  contention.measured = true;
}

/// {matmul: 921, streaming: 516}: one number a use, 0 where it is left out.
void ReadByUse(ObjectReader& object,
               std::string_view key,
               std::array<double, kDeviceUses>& target) {
  const Json* value = object.Require(key);
  if (value == nullptr) {
    return;
  }
  const Path path = object.At(key);
  ObjectReader fields(*value, path, object.faults());
  for (std::size_t use = 0; use < kDeviceUses; ++use) {
    const std::string_view name = DeviceUseNames()[use];
    if (fields.Optional(name, ReadNumber, target[use]) && !(target[use] >= 0)) {
      object.faults().Add(fields.At(name), "expected 0 or more");
    }
  }
  fields.RejectUnknown();
}

void ReadPower(ObjectReader& fields, GpuSpec& gpu) {
  PowerModel power;
  ReadPositive(fields, "limit_watts", power.limit_watts);
  ReadPositive(fields, "idle_watts", power.idle_watts);
  ReadPositive(fields, "highest_mhz", power.highest_mhz);
  ReadPositive(fields, "profiled_mhz", power.profiled_mhz);
  ReadPositive(fields, "exponent", power.exponent);
  ReadByUse(fields, "watts", power.watts);
  ReadByUse(fields, "slows", power.slows);
  if (power.limit_watts > 0 && power.idle_watts >= power.limit_watts) {
    fields.faults().Add(fields.At("idle_watts"), "expected less than limit_watts");
  }
  if (power.highest_mhz > 0 && power.profiled_mhz > power.highest_mhz) {
    fields.faults().Add(fields.At("profiled_mhz"), "expected highest_mhz at most");
  }
  gpu.power = power;
}

void ReadErrors(ObjectReader& fields, GpuSpec& gpu) {
  PartErrors errors;
  const auto read = [&](std::string_view key, double& share) {
    if (fields.Required(key, ReadNumber, share) && !(share >= 0 && share <= 1)) {
      fields.faults().Add(fields.At(key), "expected a standard deviation as a share, 0 to 1");
    }
  };
  read("ops", errors.ops);
  read("roofline", errors.roofline);
  if (fields.Find("guessed") != nullptr) {
    read("guessed", errors.guessed.emplace());
  }
  read("collectives", errors.collectives);
  read("sizes", errors.sizes);
  read("ranks", errors.ranks);
  read("contention", errors.contention);
  read("host", errors.host);
  read("host_copies", errors.host_copies);
  fields.Required("step", ReadTime, errors.step);
  gpu.errors = errors;
}

}  // namespace

GpuSpec ReadGpu(const Json& value,
                const Path& path,
                Faults& faults,
                const KernelRatesReader& read) {
  ObjectReader object(value, path, faults);
  GpuSpec gpu;
  if (const Json* format = object.Require("format"); format != nullptr && *format != "dc-gpu/1") {
    faults.Add(object.At("format"), "expected \"dc-gpu/1\"");
  }
  object.Required("name", ReadString, gpu.name);
  if (object.Required("memory", ReadSize, gpu.memory)) {
    CheckPositive(object, "memory", static_cast<double>(gpu.memory.count()));
  }
  object.Required("outside_allocator", ReadSize, gpu.outside_allocator);
  ReadRate(object, "memory_bandwidth", gpu.memory_bandwidth);
  ReadOptionalRate(object, "host_bandwidth", gpu.host_bandwidth);
  ReadOptionalRate(object, "give_back_rate", gpu.give_back_rate);
  ReadCount(object, "multiprocessors", gpu.multiprocessors);
  ReadMatmulPeaks(object, gpu);
  ReadShare(object, "matmul_efficiency", gpu.matmul_efficiency);
  ReadShare(object, "attention_efficiency", gpu.attention_efficiency);
  ReadShare(object, "attention_backward_efficiency", gpu.attention_backward_efficiency);
  ReadShare(object, "bandwidth_efficiency", gpu.bandwidth_efficiency);
  object.Required("shortest_kernel", ReadTime, gpu.shortest_kernel);
  ReadWorkspaces(object, gpu);
  ReadSourced(object, "kernels", [&](ObjectReader& fields) { gpu.kernels = read.kernels(fields); });
  ReadSourced(object, "triton", [&](ObjectReader& fields) { gpu.triton = read.triton(fields); });
  ReadSourced(object, "gaps", [&](ObjectReader& fields) { ReadGaps(fields, gpu.gaps); });
  ReadSourced(object, "contention",
              [&](ObjectReader& fields) { ReadContention(fields, gpu.contention); });
  ReadSourced(object, "power", [&](ObjectReader& fields) { ReadPower(fields, gpu); });
  ReadSourced(object, "errors", [&](ObjectReader& fields) { ReadErrors(fields, gpu); });
  object.Optional("source", ReadString, gpu.source);
  object.RejectUnknown();
  return gpu;
}

double GpuSpec::MatmulFlops(DType dtype) const {
  for (const MatmulPeak& peak : matmul) {
    if (peak.dtype == dtype) {
      return peak.flops_per_second;
    }
  }
  return 0;
}

}  // namespace dcsim
