// sweep-micro-steps COUNT [SEED [WORKLOADS]]: predicts COUNT drawn steps of 32 to 64 micro-steps,
// of the first WORKLOADS of known_workloads (all), with PredictPlan and with each micro-step
// simulated. sweep-micro-steps listed: the same for 8 and 64 micro-steps of five workloads under
// listed_plans.
//
// A line a step, with the micro-steps that PredictPlan simulated. Ends with 1 where results differ
// in a byte, and where no step was predicted from fewer micro-steps than it has.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/ir/result.h"
#include "sim/search/random.h"
#include "tests/support/source_folder.h"
#include "tools/common/json_text.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

const std::string source_folder = SourceFolder();

using Names = std::vector<std::string>;

const std::string& AnyOf(const Names& names, Random& random) {
  return names[random.Below(names.size())];
}

/// Adds `key` with one of the values to every fourth draw.
void MayAdd(std::vector<Override>& overrides,
            Random& random,
            const std::string& key,
            const Names& values) {
  if (random.Below(4) == 0) {
    overrides.push_back({key, AnyOf(values, random)});
  }
}

struct Draw {
  std::string workload;
  std::string plan;
  std::string cluster;
  int micro_steps = 8;
  std::vector<Override> changes;
  std::vector<Override> cluster_changes;

  std::string Text() const {
    std::string text = workload + " " + plan + " " + cluster + " " + std::to_string(micro_steps);
    for (const auto* list : {&changes, &cluster_changes}) {
      for (const Override& each : *list) {
        text += " " + each.key + "=" + each.value;
      }
    }
    return text;
  }
};

const Names known_workloads = {"tiny-llama",   "mlp-8x4096",    "mixtral-2", "gpt2",
                               "resnet-50",    "bert-large",    "vit-large", "levit-384",
                               "llama-3.2-1b", "whisper-medium"};
const Names listed_plans = {"zero1",
                            "zero1-deepcompile",
                            "zero2",
                            "zero2-eager",
                            "zero3-deepcompile",
                            "zero3-deepcompile-offload",
                            "zero3-eager",
                            "zero3"};

Draw DrawStep(std::uint64_t seed, std::size_t workloads) {
  static const Names drawn_plans = {
      "zero1",       "zero1-deepcompile", "zero1-eager",       "zero1-8036",
      "zero2",       "zero2-deepcompile", "zero2-eager",       "zero3",
      "zero3-ahead", "zero3-copy-engine", "zero3-deepcompile", "zero3-deepcompile-offload",
      "zero3-eager", "zero1-before-8036"};
  static const Names drawn_clusters = {"h200-1", "h200-2", "h200-4", "h200-8", "h100-2", "h100-4"};
  Random random(seed);
  Draw draw;
  draw.workload = known_workloads[random.Below(workloads)];
  draw.plan = AnyOf(drawn_plans, random);
  draw.cluster = AnyOf(drawn_clusters, random);
  draw.micro_steps = 32 + static_cast<int>(random.Below(33));
  MayAdd(draw.changes, random, "communicators", {"2"});
  MayAdd(draw.changes, random, "reduce_bucket", {"10000000", "50000000", "2000000000"});
  MayAdd(draw.changes, random, "double_buffer", {"false"});
  MayAdd(draw.changes, random, "buffer_lifetime", {"permanent"});
  MayAdd(draw.changes, random, "release", {"record_stream", "event_ordered"});
  MayAdd(draw.changes, random, "gradient_clipping", {"1.0"});
  MayAdd(draw.changes, random, "allocator", {"expandable_segments"});
  MayAdd(draw.changes, random, "offload_parameters", {"true"});
  MayAdd(draw.changes, random, "sync_before_reduce", {"true"});
  MayAdd(draw.cluster_changes, random, "host_slowdown", {"0.3", "0.8", "3", "10"});
  MayAdd(draw.cluster_changes, random, "host.launch_queue", {"0", "100", "5000"});
  MayAdd(draw.cluster_changes, random, "gpu.memory", {"6 GiB", "12 GiB", "40 GiB"});
  draw.changes.push_back({"gradient_accumulation_steps", std::to_string(draw.micro_steps)});
  return draw;
}

const ProfiledWorkload& WorkloadOf(const std::string& name, const std::string& gpu) {
  static std::map<std::string, ProfiledWorkload> loaded;
  const auto [entry, is_new] = loaded.try_emplace(name + gpu);
  if (is_new) {
    entry->second = LoadProfiledWorkload(source_folder + "/traces/" + name, gpu);
  }
  return entry->second;
}

/// Prints both predictions' verdict; false where the options contradict each other.
class Comparison {
 public:
  bool Compare(const Draw& draw) {
    try {
      const Cluster cluster = LoadCluster(
          source_folder + "/configs/clusters/" + draw.cluster + ".yaml", draw.cluster_changes);
      const ProfiledWorkload& loaded = WorkloadOf(draw.workload, cluster.gpu.name);
      const PredictionInputs inputs{loaded.workload.graph,
                                    loaded.profile ? &*loaded.profile : nullptr, cluster};
      const Plan plan = LoadPlan(source_folder + "/configs/plans/" + draw.plan + ".yaml",
                                 draw.changes, inputs, cluster.gpus());
      const Prediction repeated = PredictPlan(plan, inputs);
      const Prediction plain = Predict(LowerFor(plan, inputs), plan, inputs, false);
      const bool same =
          PrintJson(PrintResult(repeated.result)) == PrintJson(PrintResult(plain.result));
      std::cout << draw.Text() << ": " << repeated.micro_steps << " " << plain.result.verdict
                << (same ? "\n" : " DIFFERENT\n") << std::flush;
      ++compared_;
      different_ += same ? 0 : 1;
      from_fewer_ += repeated.micro_steps < draw.micro_steps ? 1 : 0;
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  int Report() const {
    std::cout << compared_ << " steps, " << from_fewer_ << " from fewer micro-steps, " << different_
              << " different\n";
    return different_ == 0 && from_fewer_ > 0 ? 0 : 1;
  }

 private:
  int compared_ = 0;
  int from_fewer_ = 0;
  int different_ = 0;
};

int Sweep(std::uint64_t count, std::uint64_t seed, std::size_t workloads) {
  Comparison comparison;
  for (std::uint64_t compared = 0; compared < count; ++seed) {
    compared += comparison.Compare(DrawStep(seed, workloads)) ? 1U : 0U;
  }
  return comparison.Report();
}

int CompareListed() {
  Comparison comparison;
  for (const char* workload : {"llama-3.2-1b", "gpt2", "bert-large", "resnet-50", "mixtral-2"}) {
    for (const std::string& plan : listed_plans) {
      for (const int micro_steps : {8, 64}) {
        Draw draw{workload, plan, "h200-4", micro_steps, {}, {}};
        draw.changes.push_back({"gradient_accumulation_steps", std::to_string(micro_steps)});
        comparison.Compare(draw);
      }
    }
  }
  return comparison.Report();
}

}  // namespace
}  // namespace dcsim

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: sweep-micro-steps listed | COUNT [SEED [WORKLOADS]]\n";
    return 2;
  }
  if (std::string(argv[1]) == "listed") {
    return dcsim::CompareListed();
  }
  const auto number = [&](int i, std::uint64_t other) {
    return i < argc ? std::strtoull(argv[i], nullptr, 10) : other;
  };
  return dcsim::Sweep(number(1, 0), number(2, 0),
                      std::min<std::size_t>(number(3, UINT64_MAX), dcsim::known_workloads.size()));
}
