#include "tests/tools/views/predicted_step.h"

#include <utility>

#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

constexpr char kTensor[] = ": bfloat16[4,64] = aten::mm(";

std::string Product(const std::string& out,
                    const std::string& in,
                    const std::string& weight,
                    const std::string& module) {
  return out + kTensor + in + ", " + weight + ") @" + module + "\n";
}

std::string WeightGradient(const std::string& module) {
  const std::string gradient = "g." + module;
  return gradient + ": bfloat16[64,64] = aten::mm(x, g) @" + module + "\ngradient " + module +
         ".weight = " + gradient + "\n";
}

/// Names of the products in order, by module.
std::vector<std::string> Modules(int layers) {
  std::vector<std::string> modules = {"model.embed"};
  for (int i = 0; i < layers; ++i) {
    modules.push_back("model.layers." + std::to_string(i) + ".up");
    modules.push_back("model.layers." + std::to_string(i) + ".down");
  }
  modules.push_back("head");
  return modules;
}

}  // namespace

std::string StackText(int layers) {
  const auto modules = Modules(layers);
  std::string text = "graph stack 4 tokens\n";
  for (const std::string& module : modules) {
    text += "param " + module + ".weight bfloat16[64,64]\n";
  }
  text += "input x bfloat16[4,64]\nforward\n";
  std::string in = "x";
  for (const std::string& module : modules) {
    text += Product("h." + module, in, module + ".weight", module);
    in = "h." + module;
  }
  text +=
      "l: bfloat16[] = aten::sum(" + in + ")\nloss l\nbackward of 0\ntangent t: bfloat16[] of l\n";
  text += "g: bfloat16[4,64] = aten::fill(t)\n";
  in = "g";
  for (std::size_t i = modules.size(); i-- > 0;) {
    text += WeightGradient(modules[i]);
    text += Product("b." + modules[i], in, modules[i] + ".weight", modules[i]);
    in = "b." + modules[i];
  }
  return text;
}

PredictedStep::PredictedStep(Graph the_graph, const PlanSpec& spec, int ranks)
    : PredictedStep(std::move(the_graph), spec, ranks, HandCluster()) {}

PredictedStep::PredictedStep(Graph the_graph, const PlanSpec& spec, int ranks, Cluster the_cluster)
    : graph(std::move(the_graph)),
      cluster(std::move(the_cluster)) {
  const PredictionInputs inputs{graph, nullptr, cluster};
  const Plan plan = Resolve(spec, graph, ranks);
  schedule = LowerFor(plan, inputs);
  Prediction prediction = Predict(schedule, plan, inputs, true);
  result = std::move(prediction.result);
  timeline = std::move(prediction.timeline).value();
}

PredictedStep PredictWorkload(const std::string& workload) {
  constexpr int kRanks = 8;
  return PredictedStep(WorkloadGraph(workload), PlanSpec(), kRanks,
                       LoadCluster(SourceFolder() + "/configs/clusters/h200-8.yaml"));
}

PredictedStep PredictStack(int layers) {
  PlanSpec spec;
  spec.options.reduce_bucket = 1'000'000;
  return PredictedStep(ParseGraphText(StackText(layers)), spec, 2);
}

}  // namespace dcsim
