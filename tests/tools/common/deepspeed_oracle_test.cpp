#include <cmath>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "tests/support/source_folder.h"
#include "tests/support/tiny_graphs.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/deepspeed_keys.h"
#include "tools/common/file.h"
#include "tools/common/hjson.h"

namespace dcsim {
namespace {

const std::string kFolder = SourceFolder() + "/";

/// DeepSpeed takes fractions and any size; a recording has whole rows, so what is none gets two.
std::int64_t RowsOf(const Json& values) {
  constexpr double kMost = 9.2e18;
  const double rows = values.value("micro", 2.0);
  const bool whole = rows >= 1 && rows < kMost && std::floor(rows) == rows;
  return whole ? static_cast<std::int64_t>(rows) : 2;
}

/// A recording with the rows and dtype that DeepSpeed reads, so that reading alone is compared.
Graph RecordingOf(const Json& values, std::int64_t hidden_size) {
  static const Graph two_layers = TwoLayers();
  Graph graph = two_layers;
  Json options = {{"hidden_size", hidden_size}};
  if (values.contains("autocast")) {
    options["autocast"] = values["autocast"];
  }
  graph.notes.options = options.dump();
  for (const Param& param : graph.params) {
    graph.values[param.value.index()].dtype =
        FindDType(values.value("dtype", "bfloat16")).value_or(DType::kBFloat16);
  }
  graph.values[graph.inputs.front().value.index()].shape.front() = RowsOf(values);
  return graph;
}

struct Answer {
  std::string fault;  // empty: accepted
  PlanSpec spec;
};

Answer Ask(const std::string& text, const Graph& graph, int ranks) {
  try {
    const YamlDocument document = ParseHjson(text, "ds.json");
    const DeepSpeedSpec read =
        ReadDeepSpeedConfig(document.json(), document.locator(), {graph, ranks, PolicyNames()});
    return {"", ReadPlanSpec(read.spec, PointerLocator("spec"))};
  } catch (const Error& error) {
    return {error.what(), {}};
  }
}

/// DeepSpeed's values that the spec holds, where its policy and stage look at them.
Json ValuesOf(const PlanSpec& spec, const Json& expected) {
  const ScheduleOptions& options = spec.options;
  const bool deepcompile = spec.policy.starts_with("deepcompile-");
  Json values = expected;
  values["steps"] = options.gradient_accumulation_steps;
  values["stage"] = options.stage;
  values["reduce_bucket"] = options.reduce_bucket;
  values["deepcompile"] = deepcompile;
  if (options.gradient_clipping || (expected["clipping"].is_number() && expected["clipping"] > 0)) {
    values["clipping"] = options.gradient_clipping.value_or(0);
  }
  if (deepcompile) {
    values["double_buffer"] = options.double_buffer;
    values["sync_before_reduce"] = options.synchronize.before_reduce;
    values["sync_after_reduce"] = options.synchronize.after_reduce;
  } else {
    values["contiguous_gradients"] = options.contiguous_gradients;
    values["overlap_comm"] = options.stage == 3 || options.overlap_comm;
  }
  if (deepcompile && options.stage == 3) {
    values["offload_activation"] = spec.offload_activation;
    values["offload_parameters"] = options.offload_parameters;
    values["sync_before_allgather"] = options.synchronize.before_allgather;
    values["sync_after_allgather"] = options.synchronize.after_allgather;
  }
  if (!deepcompile && options.stage == 3) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    const auto same = [&](const char* key, std::int64_t own) {
      const bool beyond = own == kMost && expected[key] >= kMost;
      values[key] = beyond ? expected[key] : Json(own);
    };
    same("prefetch_bucket", spec.eager_gathers.prefetch_bucket);
    same("persistence_threshold", spec.eager_gathers.persistence_threshold);
    same("max_live", spec.eager_gathers.max_live);
    same("max_reuse_distance", spec.eager_gathers.max_reuse_distance);
  }
  return values;
}

struct Case {
  std::string name;
  std::string text;
  std::string refused;  // by DeepSpeed; empty where it takes the file
  Json values;          // as DeepSpeed reads them
};

void SetIn(Json& config, std::string_view path, const Json& value) {
  Json* section = &config;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    section = &(*section)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  (*section)[std::string(path)] = value;
}

Case CaseOf(const Json& each, const Json& bases) {
  const std::string refused = each.value("refused", "");
  if (each.contains("file")) {
    const std::string name = each["file"];
    return {name, ReadFile(kFolder + name), refused, each.value("values", Json::object())};
  }
  const Json& base = bases[each["base"].get<std::string>()];
  Json config = base["config"];
  for (const auto& [path, value] : each["set"].items()) {
    SetIn(config, path, value);
  }
  Json values = base["values"];
  values.update(each.value("changes", Json::object()));
  return {each["base"].get<std::string>() + " " + each["set"].dump(), config.dump(), refused,
          values};
}

Json ReadOracle() {
  return ParseJson(ReadFile(kFolder + "tests/data/deepspeed_config/oracle.json.gz"), "oracle.json");
}

/// What dc-sim alone refuses, it says so.
bool IsOurOwnRefusal(const std::string& fault) {
  return fault.find("not modelled") != std::string::npos ||
         fault.find("dc-sim expects") != std::string::npos;
}

/// Empty where dc-sim's answer is DeepSpeed's.
std::string Difference(const Case& each, const Json& oracle) {
  const Answer answer =
      Ask(each.text, RecordingOf(each.values, oracle["hidden_size"]), oracle["ranks"].get<int>());
  if (!each.refused.empty()) {
    return answer.fault.empty() ? "DeepSpeed alone refuses: " + each.refused : "";
  }
  if (!answer.fault.empty()) {
    return IsOurOwnRefusal(answer.fault) ? "" : "dc-sim alone refuses: " + answer.fault;
  }
  const Json own = ValuesOf(answer.spec, each.values);
  return own == each.values ? "" : "other values: " + Json::diff(each.values, own).dump();
}

TEST(DeepSpeedOracleTest, FilesMeanWhatDeepSpeedReads) {
  const Json oracle = ReadOracle();
  EXPECT_EQ(oracle["deepspeed"], "0.19.8");
  ASSERT_GE(oracle["cases"].size(), 20'000U);
  for (const Json& json : oracle["cases"]) {
    const Case each = CaseOf(json, oracle["bases"]);
    EXPECT_EQ(Difference(each, oracle), "") << each.name;
  }
}

/// Its row, or that of a section which is refused or without effect as a whole.
const DeepSpeedKey* FindRow(std::string_view path) {
  const DeepSpeedKey* row = FindDeepSpeedKey(SectionOf(path), LastName(path));
  for (; row == nullptr && !SectionOf(path).empty(); path = SectionOf(path)) {
    const std::string_view section = SectionOf(path);
    row = FindDeepSpeedKey(SectionOf(section), LastName(section));
    if (row != nullptr && row->meaning == KeyMeaning::kRead) {
      return nullptr;
    }
  }
  return row;
}

TEST(DeepSpeedOracleTest, EveryKeyThatDeepSpeedLooksForIsInTheTable) {
  const Json oracle = ReadOracle();
  for (const std::string path : oracle["looked_for"]) {
    EXPECT_NE(FindRow(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace dcsim
