#pragma once

#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "tests/support/tiny_graphs.h"
#include "tools/common/deepspeed_config.h"

namespace dcsim {

/// TwoLayers has bfloat16 parameters and two rows.
inline Json Base(int stage) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"bf16", {{"enabled", true}}},
          {"zero_optimization", {{"stage", stage}}}};
}

inline Json Compiled(int stage, const Json& keys = Json::object()) {
  Json config = Base(stage);
  config["compile"] = {{"deepcompile", true}};
  config["compile"].update(keys);
  return config;
}

inline Graph Recording(const Json& options = Json::object()) {
  Graph graph = TwoLayers();
  graph.name = "two";
  graph.notes.options = options.dump();
  graph.notes.command = "python -m dcrecord two.py:build -o traces/two";
  return graph;
}

inline DeepSpeedSpec Read(const Json& document, const Graph& graph = Recording(), int ranks = 4) {
  return ReadDeepSpeedConfig(document, PointerLocator("ds.json"), {graph, ranks, PolicyNames()});
}

inline PlanSpec SpecOf(const Json& document, const Graph& graph = Recording()) {
  return ReadPlanSpec(Read(document, graph).spec, PointerLocator("spec"));
}

inline std::string Fault(const Json& document, const Graph& graph = Recording()) {
  try {
    Read(document, graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string Notes(const Json& document, const Graph& graph = Recording()) {
  return Join(Read(document, graph).notes, "\n");
}

inline bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dcsim
