// Scores by exact shortcuts against Lower and Simulate, to the nanosecond and byte.

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/ir/profile_reader.h"
#include "model/passes/resolve.h"
#include "sim/search/evaluator.h"
#include "sim/search/moves.h"
#include "tests/sim/random_step.h"
#include "tests/sim/search/search_kit.h"
#include "tests/sim/test_cluster.h"
#include "tests/support/row_name.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/compiled_form.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

std::string Describe(const Score& score) {
  return std::string(VerdictName(score.verdict)) + " " + std::to_string(score.step_time.ns()) +
         " ns, " + std::to_string(score.peak_allocated.count()) + " B allocated, " +
         std::to_string(score.peak_reserved.count()) + " B reserved";
}

/// How many schedules were folded, by the engine of their gathers.
struct FoldedCounts {
  std::uint64_t nccl = 0;
  std::uint64_t copy_engine = 0;
};

/// What a random plan runs on.
struct Conditions {
  bool contended = false;
  bool short_queue = false;  // of launches: 1 to 40
};

Cluster ClusterFor(const Conditions& conditions, std::uint64_t seed) {
  Cluster cluster = conditions.contended ? ContendedCluster(seed) : HandCluster();
  cluster.host.launch_queue = conditions.short_queue ? 1 + static_cast<int>(seed % 40) : 0;
  if (conditions.short_queue && seed % 2 == 0) {  // a host that stays ahead
    HostCosts& host = cluster.host;
    for (Duration* cost :
         {&host.view, &host.launch, &host.collective, &host.grouped, &host.event}) {
      *cost = Duration::FromNs(1 + cost->ns() / 1000);
    }
  }
  cluster.host_slowdown = seed % 5 == 0 ? 1.7 : 1;
  return cluster;
}

/// Both scores of a random plan, if it is one of ZeRO-3.
void CompareRandomPlan(const Conditions& conditions, std::uint64_t seed, FoldedCounts& folded) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomStep step = MakeRandomStep(seed);
  if (step.plan.options.stage != 3) {
    return;
  }
  const Cluster cluster = ClusterFor(conditions, seed);
  const PredictionInputs inputs{step.graph, seed % 3 == 0 ? &step.profile : nullptr, cluster};
  SearchProblem problem = MakeProblem(inputs, step.plan.ranks);
  const Plan plan = WithoutEvents(step.plan);
  const std::uint32_t order = AddOrder(problem, plan);
  const Candidate candidate = MakeCandidate(problem, plan, order);
  Evaluator evaluator(problem, {});
  const Score found = evaluator.Evaluate(candidate);
  const Score expected = EvaluatePlainly(problem, candidate, evaluator.memory_limit());
  EXPECT_EQ(found, expected) << Describe(found) << ", expected " << Describe(expected);
  const bool nccl = candidate.options.gather_engine == Engine::kNccl;
  (nccl ? folded.nccl : folded.copy_engine) += evaluator.folded();
}

FoldedCounts CompareRandomPlans(const Conditions& conditions) {
  constexpr std::uint64_t kSeeds = 2200;
  FoldedCounts folded;
  for (std::uint64_t seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    CompareRandomPlan(conditions, seed, folded);
  }
  return folded;
}

TEST(FoldedTest, RandomPlansScoreAsSimulated) {
  const FoldedCounts folded = CompareRandomPlans({});
  EXPECT_GT(folded.nccl, 60U);
  EXPECT_GT(folded.copy_engine, 20U);
}

TEST(FoldedTest, RandomPlansScoreAsSimulatedUnderContention) {
  const FoldedCounts folded = CompareRandomPlans({.contended = true});
  EXPECT_GT(folded.nccl, 60U);
  EXPECT_GT(folded.copy_engine, 20U);
}

// A step that ends with a collective for which compute waits, and a host that decides when the next
// one's tasks start (HostLead): 759 ns too long where folding takes the ranks to have gone on
// together right before the collective.
TEST(FoldedTest, AStepBeginsAsFarBehindTheHostAsItEnds) {
  constexpr std::uint64_t kSuchAPlan = 5308;
  FoldedCounts folded;
  CompareRandomPlan({.contended = true}, kSuchAPlan, folded);
  EXPECT_EQ(folded.copy_engine, 1U);
}

// Folding leaves the launch queue out where it shows that the queue decides nothing, and leaves the
// schedule to the simulation elsewhere.
TEST(FoldedTest, RandomPlansScoreAsSimulatedWithShortLaunchQueues) {
  const FoldedCounts folded = CompareRandomPlans({.contended = true, .short_queue = true});
  const FoldedCounts with_room = CompareRandomPlans({.contended = true});
  EXPECT_GT(folded.nccl, 20U);
  EXPECT_LT(folded.nccl, with_room.nccl);
}

struct WorkloadRow {
  const char* name;
  const char* folder;
};

class FoldedWorkloadTest : public testing::TestWithParam<WorkloadRow> {};

INSTANTIATE_TEST_SUITE_P(Committed,
                         FoldedWorkloadTest,
                         testing::Values(WorkloadRow{"Llama8b", "llama-3-8b"},
                                         WorkloadRow{"Llama1b", "llama-3.2-1b"},
                                         WorkloadRow{"Mlp", "mlp-8x4096"},
                                         WorkloadRow{"Qwen8b", "qwen3-8b"},
                                         WorkloadRow{"TinyLlama", "tiny-llama"}),
                         RowName());

/// Plans that a search meets: uniform ones, and what many random changes make of them.
std::vector<Candidate> WalkedCandidates(const Moves& moves, std::uint64_t seed) {
  std::vector<Candidate> candidates;
  Random random(seed);
  for (const ScheduleOptions& options : moves.space().options) {
    Candidate candidate =
        moves.Uniform(options, static_cast<std::int64_t>(random.Below(20)), 2, {});
    for (int i = 0; i < 3; ++i) {
      candidates.push_back(candidate);
      for (int change = 0; change < 8; ++change) {
        candidate = moves.Mutate(candidate, random);
      }
    }
  }
  return candidates;
}

/// Different candidates whose memory comes in blocks: with expandable segments steps may go on
/// asking the driver, and then nothing is folded.
std::size_t CountWithDefaultAllocator(const std::vector<Candidate>& candidates) {
  std::set<CandidateHash> different;
  for (const Candidate& candidate : candidates) {
    if (candidate.options.allocator == AllocatorMode::kDefault) {
      different.insert(HashOf(candidate));
    }
  }
  return different.size();
}

/// A profile taken on a host of which every op takes a fourth of the time.
Profile WithFastHost(Profile profile) {
  for (OpProfile& op : profile.ops) {
    op.host_time = Duration::FromNs(op.host_time.ns() / 4);
  }
  return profile;
}

/// A cluster whose host takes a fourth of the time for its own calls.
Cluster WithFastHost(Cluster cluster) {
  HostCosts& host = cluster.host;
  for (Duration* cost : {&host.view, &host.launch, &host.collective, &host.grouped, &host.copy,
                         &host.event, &host.synchronize, &host.python_operator, &host.autograd_node,
                         &host.compiled_graph, &host.module_hooks}) {
    *cost = Duration::FromNs(cost->ns() / 4);
  }
  return cluster;
}

struct Walked {
  std::uint64_t folded = 0;
  std::size_t with_default_allocator = 0;
};

/// Holds the scores of schedules on a walk through the space against simulating every task.
Walked CompareWalk(const PredictionInputs& inputs, const SearchSpace& space, int ranks) {
  const SearchProblem problem = MakeProblem(inputs, ranks);
  const Moves moves(problem, space);
  const auto candidates = WalkedCandidates(moves, 7);
  Evaluator evaluator(problem, {});
  const auto found = evaluator.Evaluate(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Score expected = EvaluatePlainly(problem, candidates[i], evaluator.memory_limit());
    EXPECT_EQ(found[i], expected) << i << ": " << Describe(found[i]) << ", expected "
                                  << Describe(expected);
  }
  return {evaluator.folded(), CountWithDefaultAllocator(candidates)};
}

/// Scores of schedules on a walk through the space are what simulating them gives, with the host as
/// it was profiled and with a fast one, which never holds the GPU up: then all are folded.
void CompareWorkload(const ProfiledWorkload& loaded,
                     const std::string& cluster_file,
                     const SearchSpace& space) {
  const Graph& graph = loaded.workload.graph;
  const std::optional<Profile>& profile = loaded.profile;
  const Cluster cluster =
      LoadCluster(SourceFolder() + "/configs/clusters/" + cluster_file + ".yaml");
  const std::optional<Profile> fast = profile ? std::optional(WithFastHost(*profile)) : profile;
  CompareWalk({graph, profile ? &*profile : nullptr, cluster}, space, cluster.gpus());
  const Walked walked =
      CompareWalk({graph, fast ? &*fast : nullptr, WithFastHost(cluster)}, space, cluster.gpus());
  EXPECT_GE(walked.folded, walked.with_default_allocator);
}

SearchSpace SpaceOf(Json options) {
  const Json document = {{"format", "dc-space/1"}, {"options", std::move(options)}};
  return ReadSearchSpace(document, PointerLocator("test"));
}

ProfiledWorkload Loaded(const std::string& folder) {
  return LoadProfiledWorkload(SourceFolder() + "/traces/" + folder, "NVIDIA H200");
}

TEST_P(FoldedWorkloadTest, PlansScoreAsSimulated) {
  CompareWorkload(Loaded(GetParam().folder), "h200-4",
                  SpaceOf({{"stage", 3},
                           {"reduce_bucket", {"50e6 elements", "500e6 elements"}},
                           {"double_buffer", {true, false}},
                           {"communicators", {1, 2}}}));
}

TEST_P(FoldedWorkloadTest, PlansWithCopyEnginesScoreAsSimulated) {
  CompareWorkload(Loaded(GetParam().folder), "h200-4",
                  SpaceOf({{"stage", 3},
                           {"gather_engine", "copy_engine"},
                           {"gradient_accumulation_steps", 2},
                           {"gradient_clipping", 1.0},
                           {"reduce_bucket", {"50e6 elements", "500e6 elements"}},
                           {"double_buffer", {true, false}}}));
}

TEST_P(FoldedWorkloadTest, PlansOfSeveralMicroStepsScoreAsSimulated) {
  CompareWorkload(Loaded(GetParam().folder), "h200-8",
                  SpaceOf({{"stage", 3},
                           {"gradient_accumulation_steps", 3},
                           {"gradient_clipping", 1.0},
                           {"optimizer", "foreach"},
                           {"allocator", {"default", "expandable_segments"}}}));
}

// DeepSpeed's host waits for the gradient's norm behind the end of the backward.
TEST(FoldedCompiledTest, PlansWithDeepSpeedsHandlingOfGradientsScoreAsSimulated) {
  for (const char* folder : {"llama-3.2-1b", "tiny-llama"}) {
    for (const char* engine : {"nccl", "copy_engine"}) {
      SearchSpace space = SpaceOf({{"stage", 3},
                                   {"gather_engine", engine},
                                   {"gradient_accumulation_steps", 2},
                                   {"reduce_bucket", {"50e6 elements", "500e6 elements"}}});
      for (ScheduleOptions& options : space.options) {
        options.backend = Backend::kInductor;
        options.gradient_handling = GradientHandling::kDeepSpeed;
        options.compute_grad_norm = true;
      }
      CompareWorkload(TakeForm(Loaded(folder), {Backend::kInductor, 3}, std::cerr), "h200-4",
                      space);
    }
  }
}

// One rank has no peer to copy from.
TEST(FoldedOneRankTest, PlansWithCopyEnginesScoreAsSimulated) {
  const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/h200-4.yaml");
  for (const char* engine : {"nccl", "copy_engine"}) {
    SearchSpace space = SpaceOf({{"stage", 3}, {"gather_engine", engine}});
    for (ScheduleOptions& options : space.options) {
      options.backend = Backend::kInductor;
      options.gradient_handling = GradientHandling::kDeepSpeed;
    }
    const ProfiledWorkload loaded =
        TakeForm(Loaded("tiny-llama"), {Backend::kInductor, 3}, std::cerr);
    const Profile* profile = loaded.profile ? &*loaded.profile : nullptr;
    CompareWalk({loaded.workload.graph, profile, cluster}, space, 1);
  }
}

}  // namespace
}  // namespace dcsim
