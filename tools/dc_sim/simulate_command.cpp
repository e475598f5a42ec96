#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "model/base/error.h"
#include "model/ir/collective_record.h"
#include "model/ir/plan_reader.h"
#include "sim/analysis/allocator_recorder.h"
#include "sim/analysis/step_clock.h"
#include "tools/common/answer_json.h"
#include "tools/common/beside.h"
#include "tools/common/count_option.h"
#include "tools/common/deepspeed_launches.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/beside_text.h"
#include "tools/views/memory_csv.h"
#include "tools/views/memory_snapshot.h"
#include "tools/views/report_page.h"
#include "tools/views/result_text.h"
#include "tools/views/schedule_dag.h"
#include "tools/views/timeline_trace.h"

namespace dcsim {
namespace {

struct SimulateOptions {
  StepOptions step;
  std::string json;
  std::string timeline;
  std::string memory;
  std::string memory_snapshot;
  std::string dag;
  std::string report;
  std::string save_plan;
  std::string save_collectives;
  std::string save_deepspeed_plan;
  std::string beside;
  std::optional<std::int64_t> beside_step;
};

/// Writes the launches for DeepSpeed, unless the step does not complete: then there is no step time
/// to expect.
void WriteDeepSpeedPlan(const SimulateOptions& options,
                        const LoadedStep& step,
                        const Result& result) {
  if (result.outcome != "completed") {
    std::cerr << "simulate: " << options.save_deepspeed_plan
              << " was not written: the step ends with " << result.outcome << "\n";
    return;
  }
  const Graph& graph = step.workload.graph;
  const Graph recorded = graph.compiled ? LoadWorkload(step.workload.folder).graph : graph;
  WriteFile(options.save_deepspeed_plan,
            PrintJson(PrintDeepSpeedLaunches(step.plan, recorded, graph, result)));
}

/// Whether a view is asked for that needs the step task by task.
bool HasViews(const SimulateOptions& options) {
  return !options.timeline.empty() || !options.memory.empty() || !options.dag.empty() ||
         !options.report.empty();
}

/// These views, but for the report, which also has what stands beside.
void WriteViews(const SimulateOptions& options,
                const Schedule& schedule,
                const Graph& graph,
                const Timeline& timeline) {
  if (!options.timeline.empty()) {
    WriteFile(options.timeline,
              PrintTimelineTrace({&timeline, 1}, schedule, graph, AnsweringVersion()));
  }
  if (!options.memory.empty()) {
    WriteFile(options.memory, PrintMemoryCsv(timeline, schedule, graph));
  }
  if (!options.dag.empty()) {
    WriteScheduleDag(options.dag, DagForm::kPage, schedule, graph, timeline);
  }
}

/// A trace beside the prediction; nothing where the step does not complete.
std::optional<Beside> CompareWithTrace(const std::optional<KinetoTrace>& trace,
                                       const LoadedStep& step,
                                       const Prediction& prediction) {
  if (!trace) {
    return std::nullopt;
  }
  const std::string& outcome = prediction.result.outcome;
  if (outcome != "completed") {
    std::cerr << "simulate: nothing stands beside " << trace->file << ": the step ends with "
              << outcome << "\n";
    return std::nullopt;
  }
  if (trace->ranks && *trace->ranks != step.plan.ranks) {
    std::cerr << trace->file << ": from a job of " << *trace->ranks
              << " ranks; the prediction is for " << step.plan.ranks << "\n";
  }
  const Schedule schedule = LowerStep(step);
  PredictionInputs inputs = step.inputs();
  const ClockedCosts clocked = CostsAtClock(schedule, inputs);
  inputs.clock_mhz = clocked.clock_mhz;
  SimulationOptions simulation = OptionsFor(schedule, inputs);
  simulation.allocator.capacity = kMaxCapacity;  // the step fits, in some order of its segments
  const auto kernels = FindKernelSpans(schedule, clocked.costs, simulation);
  return CompareBeside(*trace,
                       {schedule, step.workload.graph, kernels, clocked.costs, prediction.result});
}

/// The result, and what stands beside it, as JSON and for people.
void WriteAnswer(const SimulateOptions& options,
                 const Result& result,
                 const Cluster& cluster,
                 const std::optional<Beside>& beside) {
  if (!options.json.empty()) {
    WriteFile(options.json,
              PrintAnswer(beside ? PrintBeside(*beside, result) : PrintResult(result)));
  }
  if (options.json != "-") {
    std::cout << PrintResultText(result, cluster)
              << (beside ? "\n" + PrintBesideText(*beside) : "");
  }
}

ExitCode RunSimulate(const SimulateOptions& options) {
  if (!options.dag.empty()) {
    CheckDagPath(options.dag);
  }
  if (options.beside_step && options.beside.empty()) {
    throw Error("--beside-step: expected --beside, whose step it is");
  }
  const LoadedStep step = LoadStep(options.step);
  std::optional<KinetoTrace> trace;
  if (!options.beside.empty()) {
    trace = LoadKinetoTrace(options.beside, options.beside_step, std::cerr);
  }
  CheckOutputs({{"--json", options.json},
                {"--timeline", options.timeline},
                {"--memory", options.memory},
                {"--memory-snapshot", options.memory_snapshot},
                {"--dag", options.dag},
                {"--report", options.report},
                {"--save-plan", options.save_plan},
                {"--save-collectives", options.save_collectives},
                {"--save-deepspeed-plan", options.save_deepspeed_plan}});
  if (!options.save_deepspeed_plan.empty()) {
    RequireDeepSpeedPlan(step.plan, step.workload.graph);
  }
  const bool views = HasViews(options);
  std::optional<Schedule> whole;
  AllocatorRecorder allocator;
  const bool snapshot = !options.memory_snapshot.empty();
  if (views || snapshot || !options.save_collectives.empty()) {
    whole = LowerStep(step);
  }
  const Prediction prediction = views || snapshot ? Predict(*whole, step.plan, step.inputs(), views,
                                                            snapshot ? &allocator : nullptr)
                                                  : PredictPlan(step.plan, step.inputs());
  if (snapshot) {
    WriteFile(options.memory_snapshot,
              PrintMemorySnapshot(allocator.events(), *whole, step.workload.graph));
  }
  if (!options.save_plan.empty()) {
    WriteFile(options.save_plan, PrintJson(PrintPlan(step.plan, step.workload.graph)));
  }
  if (!options.save_collectives.empty()) {
    WriteFile(options.save_collectives,
              PrintJson(PrintCollectiveRecord(*whole, PrintPlan(step.plan, step.workload.graph),
                                              step.workload.graph)));
  }
  if (!options.save_deepspeed_plan.empty()) {
    WriteDeepSpeedPlan(options, step, prediction.result);
  }
  if (prediction.timeline) {
    WriteViews(options, *whole, step.workload.graph, *prediction.timeline);
  }
  const std::optional<Beside> beside = CompareWithTrace(trace, step, prediction);
  if (!options.report.empty()) {
    const ReportedStep reported{prediction.result,   step.cluster,         *whole,
                                step.workload.graph, *prediction.timeline, beside};
    WriteFile(options.report, PrintReportPage(reported, AnsweringVersion()));
  }
  WriteAnswer(options, prediction.result, step.cluster, beside);
  return prediction.result.outcome == "completed" ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand SimulateCommand() {
  return {"simulate", "Time, memory and stalls of one optimizer step under one schedule",
          "  dc-sim simulate traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan "
          "configs/plans/zero3.yaml\n"
          "  dc-sim simulate traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan "
          "configs/plans/zero3.yaml \\\n"
          "    --set stage=2 --set gradient_accumulation_steps=4 --json - --timeline step.json.gz",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<SimulateOptions>();
            DeclareStepOptions(app, options->step);
            app.add_option("--json", options->json, "write the result as JSON; - is stdout");
            app.add_option(
                "--beside", options->beside,
                "trace of torch.profiler (.json, .json.gz), shown beside the prediction");
            AddCount(app, "--beside-step", options->beside_step, {0},
                     "its ProfilerStep#N alone; the mean of all if left out");
            app.add_option("--timeline", options->timeline,
                           "write the step task by task, for Perfetto (ui.perfetto.dev)");
            app.add_option("--memory", options->memory, "write memory over time as CSV");
            app.add_option("--memory-snapshot", options->memory_snapshot,
                           "write what the allocator does, for pytorch.org/memory_viz (.pickle)");
            app.add_option("--dag", options->dag,
                           "draw the schedule on one page (.svg, .pdf, .png or .dot)");
            app.add_option("--report", options->report,
                           "write verdict, timeline and memory as one page (.html)");
            app.add_option("--save-plan", options->save_plan,
                           "write the plan with every decision spelled out");
            app.add_option("--save-collectives", options->save_collectives,
                           "write the collectives of the step; --plan takes the file");
            app.add_option("--save-deepspeed-plan", options->save_deepspeed_plan,
                           "write the plan for a job that DeepSpeed trains (dcsim_deepspeed)");
            return [options] { return RunSimulate(*options); };
          }};
}

}  // namespace dcsim
