#include "model/ir/profile_reader.h"

#include "model/ir/document.h"

namespace dcsim {
namespace {

constexpr std::string_view kFormat = "dc-profile/1";
constexpr double kMostMhz = 100'000;

void ReadKernelTime(ObjectReader& object, std::string_view key, Duration& target) {
  constexpr std::int64_t kMost = 3'600'000'000'000;  // an hour
  std::int64_t ns = 0;
  if (!object.Required(key, ReadInteger, ns)) {
    return;
  }
  if (ns < 0 || ns > kMost) {
    object.faults().Add(object.At(key), "expected nanoseconds from 0 to an hour's");
    return;
  }
  target = Duration::FromNs(ns);
}

std::int64_t ReadCountField(ObjectReader& object, std::string_view key) {
  std::int64_t count = 0;
  if (object.Required(key, ReadInteger, count) && count < 0) {
    object.faults().Add(object.At(key), "expected 0 or more");
  }
  return count;
}

Kernel ReadKernel(const Json& value, const Path& path, Faults& faults) {
  ObjectReader object(value, path, faults);
  Kernel kernel;
  object.Required("name", ReadString, kernel.name);
  ReadKernelTime(object, "device_time_ns", kernel.device_time);
  kernel.ctas = ReadCountField(object, "ctas");
  kernel.threads = ReadCountField(object, "threads");
  kernel.shared_memory = Bytes(ReadCountField(object, "shared_memory_bytes"));
  object.RejectUnknown();
  return kernel;
}

/// An index field below `count`, or 0 after a fault.
std::size_t ReadBelow(
    const Json& value, std::size_t count, std::string_view what, const Path& path, Faults& faults) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= count) {
    faults.Add(path,
               "expected an index of " + std::string(what) + " below " + std::to_string(count));
    return 0;
  }
  return value.get<std::size_t>();
}

/// Blocks of one footprint while it is read: alive or freed, and whether the op returns them.
struct FootprintState {
  std::vector<FootprintStep> steps;
  std::vector<bool> alive;
  std::vector<bool> returned;
};

void ReadAllocation(
    const Json& value, const Op& op, FootprintState& state, const Path& path, Faults& faults) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  FootprintStep step;
  bool returned = false;
  const auto bytes = ReadInteger(value[1], Path(path, std::size_t{1}), faults);
  if (bytes && (*bytes < 1 || *bytes > kMost)) {
    faults.Add(path, "expected from 1 to 2^48 bytes");
  }
  step.bytes = Bytes(bytes.value_or(1));
  if (!value[2].is_null()) {
    const Path here(path, std::size_t{2});
    const std::size_t output = ReadBelow(value[2], op.outputs.size(), "an output", here, faults);
    step.output = static_cast<std::int32_t>(output);
    returned = output < op.outputs.size() && !op.outputs[output].is_none();
  }
  step.block = static_cast<std::uint32_t>(state.alive.size());
  state.alive.push_back(true);
  state.returned.push_back(returned);
  state.steps.push_back(step);
}

void ReadFree(const Json& value, FootprintState& state, const Path& path, Faults& faults) {
  const std::size_t block =
      ReadBelow(value[1], state.alive.size(), "an allocated block", path, faults);
  if (block >= state.alive.size() || !state.alive[block]) {
    faults.Add(path, "the block is not allocated");
    return;
  }
  if (state.returned[block]) {
    faults.Add(path, "the block holds an output, which outlives the op");
    return;
  }
  state.alive[block] = false;
  FootprintStep step;
  step.kind = FootprintStep::Kind::kFree;
  step.block = static_cast<std::uint32_t>(block);
  state.steps.push_back(step);
}

std::vector<FootprintStep> ReadFootprint(const Json& list,
                                         const Op& op,
                                         const Path& path,
                                         Faults& faults) {
  FootprintState state;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& value = list[i];
    const Path here(path, i);
    if (value.is_array() && value.size() == 3 && value[0] == "allocate") {
      ReadAllocation(value, op, state, here, faults);
    } else if (value.is_array() && value.size() == 2 && value[0] == "free") {
      ReadFree(value, state, here, faults);
    } else {
      faults.Add(here, "expected [\"allocate\", bytes, output or null] or [\"free\", block]");
    }
  }
  return state.steps;
}

OpProfile ReadOpProfile(const Json& value,
                        const Graph& graph,
                        const Profile& profile,
                        const Path& path,
                        Faults& faults) {
  ObjectReader object(value, path, faults);
  OpProfile entry;
  entry.op = OpId(0);
  if (const Json* op = object.Require("op")) {
    entry.op = OpId(ReadBelow(*op, graph.ops.size(), "an op", object.At("op"), faults));
  }
  ReadKernelTime(object, "device_time_ns", entry.device_time);
  ReadKernelTime(object, "device_time_spread_ns", entry.device_time_spread);
  ReadKernelTime(object, "host_time_ns", entry.host_time);
  if (const Json* kernels = object.RequireArray("kernels")) {
    const Path here = object.At("kernels");
    for (std::size_t i = 0; i < kernels->size(); ++i) {
      entry.kernels.push_back(static_cast<std::uint32_t>(
          ReadBelow((*kernels)[i], profile.kernels.size(), "a kernel", Path(here, i), faults)));
    }
  }
  const Json* footprint = object.RequireArray("footprint");
  if (footprint != nullptr && entry.op.index() < graph.ops.size()) {
    entry.footprint = ReadFootprint(*footprint, graph.op(entry.op), object.At("footprint"), faults);
  }
  object.RejectUnknown();
  return entry;
}

std::vector<OpProfile> ReadOps(const Json& list,
                               const Graph& graph,
                               const Profile& profile,
                               const Path& path,
                               Faults& faults) {
  std::vector<OpProfile> ops;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path here(path, i);
    OpProfile entry = ReadOpProfile(list[i], graph, profile, here, faults);
    if (!ops.empty() && entry.op <= ops.back().op) {
      faults.Add(here, "ops must ascend");
    }
    ops.push_back(std::move(entry));
  }
  return ops;
}

Json PrintFootprint(const std::vector<FootprintStep>& steps) {
  Json list = Json::array();
  for (const FootprintStep& step : steps) {
    if (step.kind == FootprintStep::Kind::kFree) {
      list.push_back({"free", step.block});
    } else {
      list.push_back(
          {"allocate", step.bytes.count(), step.output < 0 ? Json(nullptr) : Json(step.output)});
    }
  }
  return list;
}

Json PrintOps(const std::vector<OpProfile>& ops) {
  Json list = Json::array();
  for (const OpProfile& entry : ops) {
    list.push_back({{"op", entry.op.index()},
                    {"device_time_ns", entry.device_time.ns()},
                    {"device_time_spread_ns", entry.device_time_spread.ns()},
                    {"host_time_ns", entry.host_time.ns()},
                    {"kernels", entry.kernels},
                    {"footprint", PrintFootprint(entry.footprint)}});
  }
  return list;
}

}  // namespace

Profile ParseProfile(std::string_view text, const Graph& graph, const std::string& file) {
  const Json json = ParseJson(text, file);
  const Locator locate = PointerLocator(file);
  RequireFormat(json, kFormat, locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(json, root, faults);
  Profile profile;
  object.Require("format");
  std::string hash;
  if (object.Required("graph", ReadString, hash) && hash != HexDigits(graph.hash)) {
    faults.Add(object.At("graph"), "the profile is of graph " + hash + ", the workload's is " +
                                       HexDigits(graph.hash) + "; profile it again");
  }
  profile.graph_hash = graph.hash;
  object.Required("gpu", ReadString, profile.gpu);
  if (const Json* origin = object.Require("origin")) {
    profile.origin = origin->dump();
  }
  profile.steps = ReadCountField(object, "steps");
  if (object.Optional("trained_steps", ReadInteger, profile.trained_steps) &&
      profile.trained_steps < 0) {
    faults.Add(object.At("trained_steps"), "expected 0 or more");
  }
  ReadKernelTime(object, "step_time_ns", profile.step_time);
  ReadKernelTime(object, "kernel_gap_ns", profile.kernel_gap);
  if (object.Optional("sm_clock_mhz", ReadNumber, profile.sm_clock_mhz) &&
      (profile.sm_clock_mhz < 1 || profile.sm_clock_mhz > kMostMhz)) {
    faults.Add(object.At("sm_clock_mhz"), "expected MHz from 1 to 100000");
  }
  if (const Json* kernels = object.RequireArray("kernels")) {
    const Path path = object.At("kernels");
    for (std::size_t i = 0; i < kernels->size(); ++i) {
      profile.kernels.push_back(ReadKernel((*kernels)[i], Path(path, i), faults));
    }
  }
  if (const Json* ops = object.RequireArray("ops")) {
    profile.ops = ReadOps(*ops, graph, profile, object.At("ops"), faults);
  }
  if (const Json* ops = object.FindArray("side_by_side")) {
    profile.side_by_side = ReadOps(*ops, graph, profile, object.At("side_by_side"), faults);
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  return profile;
}

std::string PrintProfile(const Profile& profile) {
  Json json = {{"format", kFormat},
               {"graph", HexDigits(profile.graph_hash)},
               {"gpu", profile.gpu},
               {"origin", profile.origin.empty() ? Json::object() : Json::parse(profile.origin)},
               {"steps", profile.steps}};
  if (profile.trained_steps > 0) {
    json["trained_steps"] = profile.trained_steps;
  }
  json["step_time_ns"] = profile.step_time.ns();
  json["kernel_gap_ns"] = profile.kernel_gap.ns();
  if (profile.sm_clock_mhz > 0) {
    json["sm_clock_mhz"] = std::lround(profile.sm_clock_mhz);
  }
  json["kernels"] = Json::array();
  for (const Kernel& kernel : profile.kernels) {
    json["kernels"].push_back({{"name", kernel.name},
                               {"device_time_ns", kernel.device_time.ns()},
                               {"ctas", kernel.ctas},
                               {"threads", kernel.threads},
                               {"shared_memory_bytes", kernel.shared_memory.count()}});
  }
  json["ops"] = PrintOps(profile.ops);
  if (!profile.side_by_side.empty()) {
    json["side_by_side"] = PrintOps(profile.side_by_side);
  }
  return json.dump() + "\n";
}

}  // namespace dcsim
