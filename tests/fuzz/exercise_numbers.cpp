#include "tests/fuzz/exercise_numbers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/cost/kernel_models.h"
#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "tests/fuzz/exercise.h"
#include "tests/sim/random_step.h"
#include "tests/support/source_folder.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// Every cluster of configs/, with its GPU, in the order of their names.
std::vector<Json> CommittedClusters() {
  std::vector<std::string> paths;
  const std::filesystem::path folder = SourceFolder() + "/configs/clusters";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Json> clusters;
  clusters.reserve(paths.size());
  for (const std::string& path : paths) {
    clusters.push_back(LoadCluster(path).document);
  }
  DCSIM_CHECK(!clusters.empty()) << folder;
  return clusters;
}

/// What has a number: all but texts for people.
void FindNumbers(Json& value, std::vector<Json*>& numbers) {
  if (value.is_structured()) {
    for (Json& part : value) {
      FindNumbers(part, numbers);
    }
  } else if (value.is_number() ||
             (value.is_string() && value.get_ref<const std::string&>().find(' ') < 24 &&
              std::isdigit(static_cast<unsigned char>(value.get_ref<const std::string&>()[0])) !=
                  0)) {
    numbers.push_back(&value);
  }
}

/// A number, or one with a unit ("4.9 us"), times `factor`.
void Multiply(double factor, Json& value) {
  if (value.is_number_integer()) {
    value =
        static_cast<std::int64_t>(std::clamp(std::round(value.get<double>() * factor), 0.0, 9e18));
  } else if (value.is_number()) {
    value = value.get<double>() * factor;
  } else {
    const auto& text = value.get_ref<const std::string&>();
    const std::size_t end = text.find(' ');
    if (const auto number = FindNumber(text.substr(0, end))) {
      value = std::to_string(*number * factor) + text.substr(end);
    }
  }
}

/// From 10^-5 to 10^5, in steps of a twentieth of a power of ten.
double Factor(std::uint64_t draw) {
  return std::pow(10, static_cast<double>(draw % 201) / 20 - 5);
}

Json DrawCluster(Draws& draws) {
  static const std::vector<Json> clusters = CommittedClusters();
  Json document = clusters[draws.Take() % clusters.size()];
  std::vector<Json*> numbers;
  FindNumbers(document, numbers);
  constexpr std::uint64_t kMostChanges = 6;
  for (std::uint64_t left = 1 + draws.Take() % kMostChanges; left > 0; --left) {
    Json& value = *numbers[draws.Take() % numbers.size()];
    Multiply(Factor(draws.Take()), value);
  }
  return document;
}

/// A schedule to simulate, and what it is of.
struct SmallStep {
  const Graph* graph = nullptr;
  Plan plan;
  const Profile* profile = nullptr;
};

/// FuzzGraph under any options, or one of 64 random graphs of at most 100 ops under its own plan.
SmallStep DrawStep(Draws& draws) {
  static const std::vector<RandomStep> steps = [] {
    std::vector<RandomStep> made;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      made.push_back(MakeRandomStep(seed));
    }
    return made;
  }();
  const std::uint64_t draw = draws.Take();
  if (draw % 2 == 0) {
    const RandomStep& step = steps[draw / 2 % steps.size()];
    const bool small = IsSmall(step.graph, step.plan.options);
    if (small) {
      return {&step.graph, step.plan, draw / 128 % 2 == 0 ? &step.profile : nullptr};
    }
  }
  const std::uint64_t bits = draws.Take() << 32U | draws.Take() << 16U | draws.Take();
  return {&FuzzGraph(), Resolve(SpecOf(bits), FuzzGraph(), 1 + static_cast<int>(draw % 8)),
          nullptr};
}

void CheckAmounts(const Result& result) {
  for (const Duration time : {result.step_time, result.compute, result.exposed_communication,
                              result.compute_gaps, result.exposed_gaps, result.exposed_starts}) {
    DCSIM_CHECK(time >= Duration()) << time.ns();
  }
  for (const Bytes bytes : {result.peak_live, result.peak_allocated, result.peak_active,
                            result.peak_reserved, result.allocated_after_step}) {
    DCSIM_CHECK(bytes >= Bytes()) << bytes.count();
  }
  for (const auto& each : result.collectives) {
    DCSIM_CHECK(each.busy >= Duration()) << each.busy.ns();
  }
}

void CheckSpans(const Timeline& timeline) {
  for (const Span& span : timeline.spans) {
    DCSIM_CHECK(span.start >= SimTime() && span.end >= span.start) << span.end.ns();
  }
}

}  // namespace

bool ExerciseNumbers(Draws draws) {
  try {
    const Cluster cluster =
        ReadCluster(DrawCluster(draws), PointerLocator("drawn"), kKernelRatesReader);
    const SmallStep step = DrawStep(draws);
    const PredictionInputs inputs{*step.graph, step.profile, cluster};
    const Prediction prediction = Predict(LowerFor(step.plan, inputs), step.plan, inputs, true);
    DCSIM_CHECK(prediction.result.outcome != "deadlock") << prediction.result.stop->task;
    CheckAmounts(prediction.result);
    CheckSpans(*prediction.timeline);
    return prediction.result.outcome == "completed";
  } catch (const Error&) {
    return false;
  }
}

bool ExerciseNumbers(Random& random) {
  constexpr std::size_t kBytes = 48;
  std::vector<std::uint8_t> bytes(kBytes);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(random.Below(256));
  }
  return ExerciseNumbers(Draws(bytes));
}

}  // namespace dcsim
