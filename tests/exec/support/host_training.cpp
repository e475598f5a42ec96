#include "tests/exec/support/host_training.h"

#include <exception>
#include <memory>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include "exec/communicator/host_communicator.h"
#include "exec/reference/reference_data.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"

namespace dcsim::exec {
namespace {

void Collect(const std::vector<OwnedElements>& owned, std::vector<at::Tensor>& whole) {
  for (const OwnedElements& part : owned) {
    whole[part.param.index()].narrow(0, part.begin, part.elements.numel()).copy_(part.elements);
  }
}

std::vector<at::Tensor> EmptyParams(const Graph& graph) {
  std::vector<at::Tensor> whole(graph.params.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (graph.params[i].requires_grad) {
      whole[i] = at::zeros({graph.numel(ParamId(i))}, at::kFloat);
    }
  }
  return whole;
}

}  // namespace

void UseStrictOps() {
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
}

std::vector<ReferenceTraining::Step> TrainReference(const HostJob& job, int steps) {
  UseStrictOps();
  Reference reference;
  reference.seed = job.seed;
  reference.ranks = job.ranks;
  reference.accumulation = job.spec.options.gradient_accumulation_steps;
  ReferenceTraining training(job.graph, reference, "cpu");
  std::vector<ReferenceTraining::Step> trained;
  for (int step = 0; step < steps; ++step) {
    trained.push_back(training.Run(step, /*update=*/true));
  }
  return trained;
}

at::Tensor WholeParam(const Graph& graph, ParamId id, std::uint64_t seed) {
  return ReferenceParam(graph, id, seed, 0, graph.numel(id), c10::kCPU);
}

void RunRanks(int ranks, const std::function<void(Communicator&)>& run) {
  UseStrictOps();
  const auto group = std::make_shared<HostGroup>(ranks);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        HostCommunicator communicator(group, rank);
        run(communicator);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
        group->Abort("rank " + std::to_string(rank) + ": " + error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

std::vector<TrainedStep> TrainOnHost(const HostJob& job, int steps) {
  Plan plan = Resolve(job.spec, job.graph, job.ranks);
  if (job.change_plan) {
    job.change_plan(plan);
  }
  const Schedule schedule = Lower(plan, job.graph, nullptr, {});
  std::vector<TrainedStep> trained(static_cast<std::size_t>(steps));
  for (TrainedStep& step : trained) {
    step.losses.resize(static_cast<std::size_t>(job.ranks));
    step.gradients = EmptyParams(job.graph);
    step.masters = EmptyParams(job.graph);
  }
  RunRanks(job.ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    StepExecutor executor({job.graph, schedule, c10::kCPU, {&communicator}, job.seed, {}});
    executor.KeepGradients(true);
    for (int i = 0; i < steps; ++i) {
      TrainedStep& step = trained[static_cast<std::size_t>(i)];
      executor.RunStep(i);
      step.losses[static_cast<std::size_t>(rank)] = executor.losses();
      // Ranks write disjoint elements.
      Collect(executor.kept_gradients(), step.gradients);
      Collect(executor.master_weights(), step.masters);
    }
  });
  return trained;
}

}  // namespace dcsim::exec
