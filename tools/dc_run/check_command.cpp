#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "exec/device/machine.h"
#include "exec/reference/reference_file.h"
#include "exec/reference/reference_training.h"
#include "model/base/error.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_run/commands.h"
#include "tools/dc_run/executable_form.h"

namespace dcsim {
namespace {

struct CheckOptions {
  std::string workload;
  std::string reference;  // default: the workload's reference.json
  std::string device = "cuda";
  std::string backend = "aten";
  int stage = 3;          // of ZeRO, whose compiled graph
  int steps = 0;          // 0: all of the reference
  double tolerance = -1;  // below 0: by dtype
  bool exact = false;
};

/// What an ordinary other machine may differ by: gradients of float32 graphs by 1e-4 (other kernels
/// sum in another order), of narrower ones by 5e-2 (each bfloat16 rounding is 2^-9, and a deep
/// network carries them on; two runs that sum differently were seen 1e-2 apart).
double DefaultTolerance(const Graph& graph) {
  const bool wide = graph.params.empty() || graph.dtype(ParamId(0)) == DType::kFloat32;
  return wide ? 1e-4 : 5e-2;
}

std::string Scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

std::string Describe(const Graph& graph, std::size_t step, const exec::StepComparison& comparison) {
  const std::string worst =
      comparison.worst.is_none() ? "none differs" : graph.param(comparison.worst).name;
  return "step " + std::to_string(step) + ": loss differs by " +
         Scientific(comparison.largest_loss_error) + ", " +
         std::to_string(comparison.equal_gradients) + " of " +
         std::to_string(comparison.gradients) + " gradients equal bit for bit, largest error " +
         Scientific(comparison.largest_gradient_error) + " (" + worst + ")\n";
}

void RejectDevice(const CheckOptions& options) {
  if (options.device != "cuda" && options.device != "cpu") {
    throw Error("--device " + options.device + ": expected cuda or cpu");
  }
  if (options.device == "cuda" && exec::GpuCount() == 0) {
    throw SystemError("no GPU found; --device cpu checks on the CPU");
  }
}

ExitCode RunCheck(const CheckOptions& options) {
  RejectDevice(options);
  const Workload workload = LoadWorkload(options.workload);
  const ExecutableForm form =
      TakeExecutable({workload, {}}, options.backend, options.stage, options.device);
  const Graph& graph = form.workload.workload.graph;
  const std::string path =
      options.reference.empty()
          ? (std::filesystem::path(options.workload) / "reference.json").string()
          : options.reference;
  const exec::Reference reference = exec::ParseReference(ReadFile(path), workload.graph, path);
  const std::size_t wanted =
      options.steps <= 0 ? reference.steps.size() : static_cast<std::size_t>(options.steps);
  const std::size_t steps = std::min(wanted, reference.steps.size());
  const double tolerance = options.exact            ? 0
                           : options.tolerance >= 0 ? options.tolerance
                                                    : DefaultTolerance(workload.graph);
  exec::ReferenceTraining training(graph, reference, options.device, form.found());
  bool agrees = true;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto actual = training.Run(static_cast<int>(step), step + 1 < steps);
    const auto comparison = exec::CompareStep(graph, reference.steps[step], actual, reference.seed);
    WriteFile("-", Describe(graph, step, comparison));
    agrees = agrees && comparison.largest_loss_error <= tolerance &&
             comparison.largest_gradient_error <= tolerance;
  }
  WriteFile("-", std::string(agrees ? "agrees" : "differs") + " within " +
                     (tolerance == 0 ? "0, bit for bit" : Scientific(tolerance)) + "\n");
  return agrees ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand CheckCommand() {
  return {
      "check", "Run the graph and compare losses and gradients with its reference",
      "  dc-run check traces/tiny-llama --device cpu\n"
      "  dc-run check traces/tiny-llama --device cpu --backend inductor\n"
      "  dc-run check traces/llama-3.2-1b --reference reference.json --exact",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<CheckOptions>();
        app.add_option("WORKLOAD", options->workload, "folder of a recorded workload")->required();
        app.add_option("--reference", options->reference,
                       "file of python -m dcrecord reference; default the workload's own");
        app.add_option("--device", options->device, "cuda or cpu");
        DeclareForm(app, options->backend, options->stage);
        AddCount(app, "--steps", options->steps, {0, 1'000'000}, "steps to compare; 0 all");
        app.add_option("--tolerance", options->tolerance,
                       "largest relative error; default 1e-4 for float32, 5e-2 below");
        app.add_flag("--exact", options->exact, "bit for bit");
        return [options] { return RunCheck(*options); };
      }};
}

}  // namespace dcsim
