#include "tools/common/predict_measured.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "model/base/error.h"
#include "model/base/scaled.h"
#include "model/base/text.h"
#include "model/ir/plan_options.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "sim/analysis/host_pace.h"
#include "tools/common/compiled_form.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// The workload that a measured result lies in: traces/NAME/measured/....
std::string FolderOf(const std::string& file) {
  for (fs::path folder = fs::path(file).parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (FileExists((folder / "graph.json.xz").string())) {
      return folder.string();
    }
  }
  throw Error(file + ": no folder above it holds a graph.json.xz; name it with --workload");
}

PredictionInputs InputsOf(const ProfiledWorkload& loaded, const Cluster& cluster) {
  return {loaded.workload.graph, loaded.profile ? &*loaded.profile : nullptr, cluster};
}

Duration Sum(const WaitingDelays& delays) {
  return std::accumulate(delays.begin(), delays.end(), Duration());
}

}  // namespace

Cluster WithDelaysOf(const Result& measured, const Cluster& cluster) {
  Cluster changed = cluster;
  std::optional<WaitingDelays> longest;
  if (measured.measurement) {
    for (const RankReadings& rank : measured.measurement->ranks) {
      if (rank.waiting_delays && (!longest || Sum(*rank.waiting_delays) > Sum(*longest))) {
        longest = rank.waiting_delays;
      }
    }
  }
  if (longest) {
    std::ranges::transform(*longest, changed.gpu.gaps.waiting.begin(), [&](Duration delay) {
      return Scaled(delay, cluster.gpu.gaps.waiting_of_ops);
    });
    changed.gpu.gaps.waiting_measured = true;
  }
  return changed;
}

std::vector<SegmentPlace> RecordedSegments(const Result& measured) {
  std::vector<SegmentPlace> recorded;
  if (!measured.measurement) {
    return recorded;
  }
  Bytes most;
  for (const RankReadings& rank : measured.measurement->ranks) {
    Bytes reserved;
    for (const MeasuredSegment& segment : rank.segments) {
      reserved += segment.bytes;
    }
    if (reserved <= most) {
      continue;
    }
    most = reserved;
    recorded.clear();
    for (const MeasuredSegment& segment : rank.segments) {
      recorded.push_back({static_cast<std::uint64_t>(segment.address.count()), segment.bytes});
    }
  }
  return recorded;
}

FirstSteps FirstStepsOf(const Result& measured, const HostCosts& host) {
  FirstSteps steps;
  if (!measured.measurement || measured.measurement->step_times.empty()) {
    return steps;
  }
  const MeasurementNotes& notes = *measured.measurement;
  const auto count_of = [](const auto& each) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(each.size(), kMostSteps));
  };
  steps.awaited = count_of(notes.losses);
  steps.warmup = steps.awaited;
  steps.measured = count_of(notes.step_times);
  for (const RankReadings& rank : notes.ranks) {
    Duration read;
    for (const auto& time : rank.first_host.times) {
      read += time.value_or(Duration());
    }
    // Without loads the first steps read took up to 1.5 such calls, with them from eight on.
    steps.modules_load &= rank.first_host.ops == 0 || read > host.first_call * 4;
  }
  return steps;
}

Prediction PredictPlan(const Result& measured,
                       const ProfiledWorkload& loaded,
                       const Plan& plan,
                       const Cluster& cluster,
                       bool keep_timeline) {
  if (plan.ranks > cluster.gpus()) {
    throw Error("measured on " + std::to_string(plan.ranks) + " GPUs, " + cluster.name + " has " +
                std::to_string(cluster.gpus()));
  }
  PredictionInputs inputs = InputsOf(loaded, cluster);
  inputs.recorded_segments = RecordedSegments(measured);
  inputs.first_steps = FirstStepsOf(measured, cluster.host);
  return keep_timeline ? Predict(LowerFor(plan, inputs), plan, inputs, /*keep_timeline=*/true)
                       : PredictPlan(plan, inputs);
}

std::optional<HostPrediction> PredictWithHost(const Result& measured,
                                              const ProfiledWorkload& loaded,
                                              const Plan& plan,
                                              const Cluster& cluster) {
  const bool read = measured.measurement &&
                    std::ranges::any_of(measured.measurement->ranks,
                                        [](const RankReadings& rank) { return rank.host.ops > 0; });
  if (!read) {
    return std::nullopt;
  }
  const PredictionInputs inputs = InputsOf(loaded, cluster);
  const Schedule schedule = LowerFor(plan, inputs);
  std::optional<HostPrediction> slowest;
  for (HostPace& host : HostPaces(measured.measurement->ranks, schedule, inputs)) {
    PredictionInputs at_pace = inputs;
    at_pace.host_pace = std::move(host.tasks);
    HostPrediction each{host.slowdown,
                        Predict(schedule, plan, at_pace, /*keep_timeline=*/false).result};
    if (!slowest || each.predicted.step_time > slowest->predicted.step_time) {
      slowest = std::move(each);
    }
  }
  return slowest;
}

const ProfiledWorkload& MeasuredPredictor::Load(const std::string& folder, const Json& plan) {
  const Json stage = plan.value("stage", Json());
  const AskedForm form{.backend = BackendNamed(plan.value("backend", Json())),
                       .stage = stage.is_number_integer() ? stage.get<int>() : 0,
                       .layers = plan.value("policy", Json()) == "fsdp"};
  const bool compiled = form.backend == Backend::kInductor;
  const std::string from = compiled ? FormFile(folder, form.stage, form.layers) : folder;
  if (!loaded_ || loaded_from_ != from) {
    std::ostringstream none;  // of a form that is asked for nothing is noted
    loaded_ = TakeForm(LoadProfiledWorkload(folder, cluster_.gpu.name, options_.times), form, none);
    loaded_from_ = from;
  }
  return *loaded_;
}

MeasuredPair MeasuredPredictor::Predict(MeasuredDocument measured) {
  const std::string& file = measured.source;
  MeasuredPair pair;
  pair.measured = ReadMeasured(measured);
  pair.document = std::move(measured.document);
  if (pair.measured.plan.is_null()) {
    throw Error(file + ": /plan: holds no plan to predict: " + pair.measured.outcome);
  }
  const ProfiledWorkload& loaded =
      Load(options_.workload.empty() ? FolderOf(file) : options_.workload, pair.measured.plan);
  const Graph& graph = loaded.workload.graph;
  if (graph.hash != pair.measured.graph_hash) {
    throw Error(file + ": /workload/graph: measured on graph " +
                HexDigits(pair.measured.graph_hash) + ", " + loaded.workload.folder + " holds " +
                HexDigits(graph.hash));
  }
  const Locator in_plan = [locate = PointerLocator(file)](const std::string& pointer) {
    return locate("/plan" + pointer);
  };
  const Plan plan = ReadPlan(pair.measured.plan, graph, in_plan);
  const auto faults = FindPlanFaults(plan, graph);
  if (!faults.empty()) {
    throw Error(file + ": " + Join(faults, "\n" + file + ": "));
  }
  const Cluster with_delays = WithDelaysOf(pair.measured, cluster_);
  try {
    pair.predicted =
        PredictPlan(pair.measured, loaded, plan, with_delays, /*keep_timeline=*/false).result;
    if (options_.with_host) {
      pair.with_host = PredictWithHost(pair.measured, loaded, plan, with_delays);
    }
  } catch (const Error& error) {
    throw Error(file + ": " + error.what());
  }
  return pair;
}

}  // namespace dcsim
