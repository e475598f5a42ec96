// The keys of a predicted result, for every stage and two workloads, against
// docs/reference/formats.md.

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/file.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// Names in backticks in the first column of the table under a heading of
/// docs/reference/formats.md.
std::set<std::string> DocumentedKeys(const std::string& heading) {
  std::set<std::string> keys;
  std::istringstream text(ReadFile(SourceFolder() + "/docs/reference/formats.md"));
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    inside = line.starts_with("## ") ? line.starts_with("## " + heading) : inside;
    if (!inside || !line.starts_with("| `")) {
      continue;
    }
    const std::string column = line.substr(0, line.find(" | ", 2));
    for (std::size_t at = column.find('`'); at != std::string::npos;) {
      const std::size_t end = column.find('`', at + 1);
      keys.insert(column.substr(at + 1, end - at - 1));
      at = column.find('`', end + 1);
    }
  }
  return keys;
}

struct KeysCase {
  std::string workload;
  int stage;
};

Json ResultOf(const KeysCase& each) {
  const Graph graph = WorkloadGraph(each.workload);
  const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/h200-8.yaml");
  PlanSpec spec;
  spec.options.stage = each.stage;
  const Plan plan = Resolve(spec, graph, 8);
  const PredictionInputs inputs{graph, nullptr, cluster};
  return PrintResult(Predict(LowerFor(plan, inputs), plan, inputs, false).result);
}

class ResultKeysTest : public testing::TestWithParam<KeysCase> {};

TEST_P(ResultKeysTest, EveryKeyIsDocumented) {
  const auto documented = DocumentedKeys("dc-result/1");
  const Json result = ResultOf(GetParam());
  for (const auto& [key, value] : result.items()) {
    EXPECT_TRUE(documented.contains(key) || key == "format") << key;
  }
}

// Measured results alone have these.
TEST_P(ResultKeysTest, EveryDocumentedKeyIsThere) {
  const std::set<std::string> measured = {"step_times_ns", "losses", "versions",
                                          "machine",       "date",   "command"};
  const Json result = ResultOf(GetParam());
  for (const std::string& key : DocumentedKeys("dc-result/1")) {
    EXPECT_NE(result.contains(key), measured.contains(key)) << key;
  }
}

/// Every number whose name ends in a unit is a whole one, at any depth.
void ExpectWholeQuantities(const Json& value) {
  for (const auto& [key, field] : value.items()) {
    const bool quantity = key.ends_with("_ns") || key.ends_with("_bytes");
    EXPECT_TRUE(!quantity || field.is_null() || field.is_number_integer()) << key;
    if (field.is_structured()) {
      ExpectWholeQuantities(field);
    }
  }
}

TEST_P(ResultKeysTest, QuantitiesAreWholeNumbers) {
  const Json result = ResultOf(GetParam());
  ExpectWholeQuantities(result);
  for (const auto& [name, bytes] : result["peak_live_bytes_by_class"].items()) {
    EXPECT_TRUE(bytes.is_number_integer()) << name;
  }
}

TEST_P(ResultKeysTest, OtherFieldsHaveTheirTypes) {
  using Type = Json::value_t;
  const std::map<std::string, Type> types = {{"format", Type::string},
                                             {"origin", Type::string},
                                             {"outcome", Type::string},
                                             {"verdict", Type::string},
                                             {"stop", Type::null},
                                             {"bound_ns", Type::number_integer},
                                             {"peak_live_bytes_by_class", Type::object},
                                             {"collectives", Type::array},
                                             {"tokens_per_second", Type::number_float},
                                             {"model_flops_utilisation", Type::number_float},
                                             {"sources", Type::object},
                                             {"workload", Type::object},
                                             {"plan", Type::object},
                                             {"cluster", Type::object}};
  const Json result = ResultOf(GetParam());
  for (const auto& [key, type] : types) {
    EXPECT_EQ(result.at(key).type(), type) << key;
  }
  EXPECT_EQ(result["format"], "dc-result/1");
  EXPECT_EQ(result["gpus"], 8);
}

TEST_P(ResultKeysTest, CollectivesHaveTheirKeys) {
  const Json result = ResultOf(GetParam());
  ASSERT_FALSE(result["collectives"].empty());
  for (const Json& totals : result["collectives"]) {
    std::set<std::string> keys;
    for (const auto& [key, value] : totals.items()) {
      keys.insert(key);
    }
    const std::set<std::string> expected = {"kind",          "calls",      "launches",
                                            "payload_bytes", "wire_bytes", "busy_ns"};
    EXPECT_EQ(keys, expected);
  }
}

// Rounded to six decimals each.
TEST_P(ResultKeysTest, SourcesAddUpToOne) {
  const Json sources = ResultOf(GetParam())["sources"];
  const double sum = sources["measured"].get<double>() + sources["interpolated"].get<double>() +
                     sources["estimated"].get<double>();
  EXPECT_NEAR(sum, 1.0, 3e-6);
}

TEST_P(ResultKeysTest, PhasesAddUpToTheStep) {
  const Json result = ResultOf(GetParam());
  std::int64_t sum = 0;
  for (const char* key : {"forward_ns", "backward_ns", "optimizer_ns"}) {
    EXPECT_GT(result[key].get<std::int64_t>(), 0) << key;
    sum += result[key].get<std::int64_t>();
  }
  EXPECT_EQ(sum, result["step_time_ns"].get<std::int64_t>());
  EXPECT_GT(result["backward_ns"], result["forward_ns"]);
  EXPECT_EQ(result["verdict"], "fits");
}

TEST_P(ResultKeysTest, InputsAreWholeInside) {
  const Json result = ResultOf(GetParam());
  EXPECT_EQ(result["plan"]["format"], "dc-plan/1");
  EXPECT_EQ(result["cluster"]["format"], "dc-cluster/1");
  EXPECT_EQ(result["cluster"]["gpu"]["format"], "dc-gpu/1");
  EXPECT_EQ(result["workload"]["name"], GetParam().workload);
  EXPECT_EQ(result["workload"]["graph"].get<std::string>().size(), 16U);
}

std::string TestName(const testing::TestParamInfo<KeysCase>& info) {
  return info.param.workload.substr(0, 4) + "_zero" + std::to_string(info.param.stage);
}

INSTANTIATE_TEST_SUITE_P(Stages,
                         ResultKeysTest,
                         testing::Values(KeysCase{"tiny-llama", 1},
                                         KeysCase{"tiny-llama", 2},
                                         KeysCase{"tiny-llama", 3},
                                         KeysCase{"qwen3-8b", 1},
                                         KeysCase{"qwen3-8b", 2},
                                         KeysCase{"qwen3-8b", 3}),
                         TestName);

}  // namespace
}  // namespace dcsim
