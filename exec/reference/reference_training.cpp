#include "exec/reference/reference_training.h"

#include <algorithm>
#include <cmath>

#include <ATen/Context.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include "exec/executor/step_executor.h"
#include "exec/reference/fingerprint.h"
#include "exec/reference/reference_data.h"

namespace dcsim::exec {
namespace {

std::vector<at::Tensor> WholeParams(const Graph& graph, std::uint64_t seed, c10::Device device) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> params;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const ParamId id(i);
    params.push_back(ReferenceParam(graph, id, seed, 0, graph.numel(id), device)
                         .view(graph.value(graph.param(id).value).shape));
  }
  return params;
}

void AddTo(std::vector<at::Tensor>& total, const std::vector<at::Tensor>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (!more[i].defined()) {
      continue;
    }
    const at::Tensor gradient = more[i].to(at::kFloat);
    total[i] = total[i].defined() ? total[i].add(gradient) : gradient;
  }
}

double RelativeDifference(double expected, double actual) {
  const double scale = std::max(std::abs(expected), 1e-30);
  return std::abs(actual - expected) / scale;
}

}  // namespace

ReferenceTraining::ReferenceTraining(const Graph& graph,
                                     const Reference& reference,
                                     const std::string& device,
                                     const KernelBinaries* binaries)
    : graph_(graph),
      reference_(reference),
      device_(device),
      params_(WholeParams(graph, reference.seed, device_)),
      runner_(graph, device_, params_, binaries) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
}

ReferenceTraining::Step ReferenceTraining::Run(int step, bool update) {
  const c10::InferenceMode inference;
  Step result;
  result.gradients.resize(graph_.params.size());
  for (int rank = 0; rank < reference_.ranks; ++rank) {
    std::vector<at::Tensor> of_rank(graph_.params.size());
    result.losses.emplace_back();
    for (int m = 0; m < reference_.accumulation; ++m) {
      const std::vector<at::Tensor> inputs =
          ReferenceInputs(graph_, reference_.seed, MicroStepPlace(rank, step, m), device_);
      const MicroStepResult micro_step =
          runner_.Run(inputs, 1.0 / reference_.accumulation, /*keep_gradients=*/true);
      result.losses.back().push_back(micro_step.loss.item<double>());
      AddTo(of_rank, micro_step.gradients);
    }
    AddTo(result.gradients, of_rank);
  }
  for (at::Tensor& gradient : result.gradients) {
    if (gradient.defined()) {
      gradient = gradient.div(reference_.ranks);
    }
  }
  if (update) {
    Update(result.gradients, step + 1);
  }
  return result;
}

void ReferenceTraining::Update(const std::vector<at::Tensor>& gradients, int count) {
  if (masters_.empty()) {
    for (const at::Tensor& param : params_) {
      masters_.push_back(param.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
      first_moments_.push_back(at::zeros_like(masters_.back()));
      second_moments_.push_back(at::zeros_like(masters_.back()));
    }
  }
  const AdamW options;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      continue;
    }
    const at::Tensor step = at::full({}, static_cast<double>(count), masters_[i].options());
    at::_fused_adamw_({masters_[i]}, {gradients[i].contiguous()}, {first_moments_[i]},
                      {second_moments_[i]}, {}, {step}, options.learning_rate, options.beta1,
                      options.beta2, options.weight_decay, options.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
    params_[i].copy_(masters_[i]);
  }
}

StepComparison CompareStep(const Graph& graph,
                           const ReferenceStep& expected,
                           const ReferenceTraining::Step& actual,
                           std::uint64_t seed) {
  StepComparison comparison;
  for (std::size_t rank = 0; rank < expected.losses.size(); ++rank) {
    for (std::size_t m = 0; m < expected.losses[rank].size(); ++m) {
      comparison.largest_loss_error =
          std::max(comparison.largest_loss_error,
                   RelativeDifference(expected.losses[rank][m], actual.losses.at(rank).at(m)));
    }
  }
  for (const ReferenceGradient& reference : expected.gradients) {
    const Fingerprint own = FingerprintOf(actual.gradients[reference.param.index()],
                                          graph.param(reference.param).name, seed);
    ++comparison.gradients;
    comparison.equal_gradients += own.hash == reference.fingerprint.hash ? 1U : 0U;
    const double error = RelativeError(reference.fingerprint, own);
    if (error > comparison.largest_gradient_error) {
      comparison.largest_gradient_error = error;
      comparison.worst = reference.param;
    }
  }
  return comparison;
}

}  // namespace dcsim::exec
