#include "tests/sim/memory/allocator_oracle.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>
#include <zlib.h>

#include "model/base/error.h"

namespace dcsim {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "dc-allocator-oracle/1";

std::string ReadGzip(const std::filesystem::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw Error(path.string() + ": cannot be opened");
  }
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 20);
  int count = 0;
  while ((count = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  if (count < 0) {
    throw Error(path.string() + ": is not a whole gzip file");
  }
  return text;
}

// "key:value,key:value" as in PYTORCH_ALLOC_CONF.
AllocatorConfig ParseSettings(const std::string& settings) {
  AllocatorConfig config;
  std::istringstream stream(settings);
  for (std::string item; std::getline(stream, item, ',');) {
    const std::size_t colon = item.find(':');
    const std::string key = item.substr(0, colon);
    const std::string value = item.substr(colon + 1);
    if (key == "expandable_segments") {
      config.expandable_segments = value == "True";
    } else if (key == "max_split_size_mb") {
      config.max_split_size = Bytes::MiB(std::stoll(value));
    } else if (key == "garbage_collection_threshold") {
      config.garbage_collection_threshold = std::stod(value);
    } else if (key == "roundup_power2_divisions") {
      config.roundup_power2_divisions.fill(static_cast<std::uint32_t>(std::stoul(value)));
    } else if (key == "large_segment_size_mb") {
      config.large_segment_size = Bytes::MiB(std::stoll(value));
    } else {
      throw Error("unknown allocator setting " + key);
    }
  }
  return config;
}

SegmentEventKind ParseKind(const std::string& kind) {
  if (kind == "alloc") {
    return SegmentEventKind::kAlloc;
  }
  if (kind == "free") {
    return SegmentEventKind::kFree;
  }
  return kind == "map" ? SegmentEventKind::kMap : SegmentEventKind::kUnmap;
}

BlockState ParseState(const std::string& state) {
  if (state == "a") {
    return BlockState::kAllocated;
  }
  return state == "w" ? BlockState::kAwaitingEvents : BlockState::kFree;
}

// Torch leaves the request of the last owner in free blocks; the view has 0.
SegmentView ParseSegment(const Json& json) {
  SegmentView view;
  view.address = json.at(0).get<std::uint64_t>();
  view.stream = StreamId(json.at(2).get<std::size_t>());
  view.is_small = json.at(3).get<int>() == 1;
  for (const Json& entry : json.at(4)) {
    BlockView block;
    block.offset = view.bytes;
    block.bytes = Bytes(entry.at(0).get<std::int64_t>());
    block.state = ParseState(entry.at(2).get<std::string>());
    block.requested_bytes =
        block.state == BlockState::kFree ? Bytes(0) : Bytes(entry.at(1).get<std::int64_t>());
    view.bytes += block.bytes;
    view.blocks.push_back(block);
  }
  return view;
}

// The values of a statistic, from its changes.
std::vector<std::int64_t> ParseColumn(const Json& json, std::size_t op_count) {
  auto values = json.get<std::vector<std::int64_t>>();
  if (values.size() != op_count) {
    throw Error("a column of stats has not one entry for each operation");
  }
  std::partial_sum(values.begin(), values.end(), values.begin());
  return values;
}

std::vector<OracleStats> ParseStats(const Json& columns, std::size_t op_count) {
  std::vector<OracleStats> stats(op_count);
  for (std::size_t column = 0; column < kOracleStatNames.size(); ++column) {
    const std::vector<std::int64_t> values =
        ParseColumn(columns.at(kOracleStatNames[column]), op_count);
    for (std::size_t op = 0; op < op_count; ++op) {
      stats[op][column] = values[op];
    }
  }
  return stats;
}

std::vector<Bytes> ParseDriverFree(const Json& columns, std::size_t op_count) {
  std::vector<Bytes> driver_free;
  if (columns.contains("driver_free")) {
    for (const std::int64_t bytes : ParseColumn(columns.at("driver_free"), op_count)) {
      driver_free.emplace_back(bytes);
    }
  }
  return driver_free;
}

void ParseEvents(const Json& json, OracleScript& script) {
  script.new_events.resize(script.ops.size());
  for (const Json& entry : json) {
    const SegmentEvent event{.kind = ParseKind(entry.at(1).get<std::string>()),
                             .address = entry.at(2).get<std::uint64_t>(),
                             .bytes = Bytes(entry.at(3).get<std::int64_t>()),
                             .stream = StreamId(entry.at(4).get<std::size_t>())};
    script.new_events.at(entry.at(0).get<std::size_t>()).push_back(event);
    script.events.push_back(event);
  }
}

OracleScript ParseScript(const Json& json, AllocatorConfig config) {
  OracleScript script;
  script.name = json.at("name").get<std::string>();
  if (!json.at("memory_limit_bytes").is_null()) {
    config.memory_limit = Bytes(json.at("memory_limit_bytes").get<std::int64_t>());
  }
  if (!json.at("capacity_bytes").is_null()) {
    config.capacity = Bytes(json.at("capacity_bytes").get<std::int64_t>()) - kDriverReserve;
  }
  script.config = config;
  for (const Json& entry : json.at("ops")) {
    OracleOp op;
    op.code = entry.at(0).get<std::string>().at(0);
    for (std::size_t i = 1; i < entry.size(); ++i) {
      op.arguments.push_back(entry.at(i).get<std::int64_t>());
    }
    script.ops.push_back(std::move(op));
  }
  script.stats = ParseStats(json.at("stats"), script.ops.size());
  script.driver_free = ParseDriverFree(json.at("stats"), script.ops.size());
  script.addresses = json.at("addresses").get<std::vector<std::uint64_t>>();
  ParseEvents(json.at("segments"), script);
  for (const Json& entry : json.at("snapshots")) {
    OracleSnapshot snapshot{.op_count = entry.at(0).get<std::size_t>(), .segments = {}};
    for (const Json& segment : entry.at(1)) {
      snapshot.segments.push_back(ParseSegment(segment));
    }
    script.snapshots.push_back(std::move(snapshot));
  }
  return script;
}

}  // namespace

OracleStats ToOracleStats(const AllocatorStats& stats) {
  return {stats.allocated.current.count(),
          stats.allocated.peak.count(),
          stats.active.current.count(),
          stats.active.peak.count(),
          stats.reserved.current.count(),
          stats.reserved.peak.count(),
          stats.requested.current.count(),
          stats.requested.peak.count(),
          stats.segments.current,
          stats.segments.peak,
          stats.retries,
          stats.ooms,
          stats.inactive_split.current.count(),
          stats.inactive_split.peak.count()};
}

OracleFile LoadOracle(const std::filesystem::path& path) {
  try {
    const Json json = Json::parse(ReadGzip(path));
    if (json.at("format") != kFormat) {
      throw Error("format is not " + std::string(kFormat));
    }
    OracleFile file;
    file.settings = json.at("settings").get<std::string>();
    file.streams = json.at("streams").get<std::size_t>();
    AllocatorConfig config = ParseSettings(file.settings);
    config.device_memory = Bytes(json.at("device_bytes").get<std::int64_t>());
    config.capacity = *config.device_memory;
    for (const Json& script : json.at("scripts")) {
      file.scripts.push_back(ParseScript(script, config));
    }
    return file;
  } catch (const std::exception& error) {
    throw Error(path.string() + ": " + error.what());
  }
}

}  // namespace dcsim
