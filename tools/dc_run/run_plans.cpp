#include "tools/dc_run/run_plans.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <list>

#include "exec/executor/executable.h"
#include "model/base/error.h"
#include "model/passes/lower.h"
#include "model/passes/verify.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
#include "tools/dc_run/executable_form.h"
#include "tools/dc_run/versions.h"
#include "tools/views/timeline_trace.h"

namespace dcsim {
namespace {

ExecutionSettings SettingsOf(const PlansToRun& what, const std::string& command) {
  if (what.device != "cuda" && what.device != "cpu") {
    throw Error("--device " + what.device + ": expected cuda or cpu");
  }
  if (what.side_streams != "quiet" && what.side_streams != "any") {
    throw Error("--side-streams " + what.side_streams + ": expected quiet or any");
  }
  ExecutionSettings settings;
  settings.limit = what.limit;
  settings.gpus = what.gpus;
  settings.on_cpu = what.device == "cpu";
  settings.communicate = what.communicate;
  settings.side_streams =
      what.side_streams == "any" ? exec::SideStreams::kAny : exec::SideStreams::kQuiet;
  settings.measure.warmup_steps = what.warmup;
  settings.measure.steps = what.steps;
  settings.measure.trace = what.trace;
  settings.measure.segments = what.segments;
  settings.command = command;
  return settings;
}

/// `forms` takes the graphs that the cases are of, where these are compiled.
std::vector<ExecutionCase> LowerCases(const ProfiledWorkload& loaded,
                                      const Cluster* cluster,
                                      const PlansToRun& what,
                                      std::list<ExecutableForm>& forms) {
  const auto overrides = ParseOverrides(what.overrides, "--set");
  const auto load = [&](const std::string& file, const ProfiledWorkload& form) {
    const Graph& graph = form.workload.graph;
    if (cluster == nullptr) {
      return LoadPlan(file, overrides, graph, what.gpus);
    }
    const PredictionInputs inputs{graph, form.profile ? &*form.profile : nullptr, *cluster};
    return LoadPlan(file, overrides, inputs, what.gpus);
  };
  std::vector<ExecutionCase> cases;
  for (const std::string& file : what.plans) {
    const DeepSpeedJob job = DeepSpeedJobOf(loaded.workload.graph, what.gpus, BatchSizes::kFile);
    const AskedForm asked = FindForm(file, overrides, job);
    const bool is_compiled = asked.backend == Backend::kInductor;
    if (is_compiled) {
      forms.push_back(TakeExecutable(loaded, asked, what.device));
    }
    const ProfiledWorkload& form = is_compiled ? forms.back().workload : loaded;
    Plan plan = load(file, form);
    plan.options.module_hooks = ModuleHooks::kNone;  // ranks run graphs, and have no modules
    if (const std::string fault = exec::FindUnexecutable(plan.options); !fault.empty()) {
      throw Error(file + ": " + fault);
    }
    const Graph& graph = form.workload.graph;
    Schedule schedule = Lower(plan, graph, nullptr, {});
    RequireCorrect(schedule, graph);
    cases.push_back({&form, file, std::move(plan), std::move(schedule),
                     is_compiled ? forms.back().found() : nullptr});
  }
  return cases;
}

void WriteFiles(const std::string& out,
                const ExecutionCase& execution,
                const ExecutionResult& executed) {
  const Graph& graph = execution.graph();
  const std::string base = out + "/" + graph.name + "-" + PlanName(execution.plan_file) + "-" +
                           std::to_string(execution.plan.ranks);
  WriteFile(base + ".json", PrintJson(PrintResult(executed.result)));
  if (!executed.timelines.empty()) {
    WriteFile(base + "-timeline.json.gz",
              PrintTimelineTrace(executed.timelines, execution.schedule, graph, Versions()));
  }
}

}  // namespace

void DeclarePlansToRun(CLI::App& app, PlansToRun& what) {
  app.add_option("--set", what.overrides, "key=value changes a field of every plan")
      ->take_all()
      ->allow_extra_args(false);
  AddCount(app, "--gpus", what.gpus, {}, "ranks of this machine, a GPU each");
  app.add_option("--device", what.device, "cuda, or cpu: ranks as threads");
  AddCount(app, "--warmup", what.warmup, {1, 1'000'000}, "steps before the measured ones");
  AddCount(app, "--steps", what.steps, {1, 1'000'000}, "measured steps");
  AddCount(app, "--limit", what.limit, {0, 1'000'000'000},
           "seconds that a plan may take on GPUs, with its start, before it counts as a "
           "deadlock; 0: any");
  app.add_flag("--communication,!--no-communication", what.communicate,
               "leave collectives out, to see compute alone; losses are then meaningless");
  app.add_option("--side-streams", what.side_streams,
                 "quiet: streams whose waits delay no kernel; any: those that PyTorch's pool gives "
                 "next, as DeepSpeed takes them");
  app.add_flag("--segments", what.segments,
               "record where the driver puts the allocator's segments, for predictions of memory "
               "to the byte; slows each call of the allocator");
  app.add_option(
      "--cluster", what.cluster,
      "cluster file to predict with; what DeepCompile's policies may know of the machine");
  app.add_option("--out", what.out, "folder for results and timelines");
}

std::string MeasuringText(const PlansToRun& what) {
  return (what.side_streams == "quiet" ? "" : " --side-streams " + what.side_streams) +
         (what.segments ? " --segments" : "");
}

std::string PlanName(const std::string& file) {
  std::filesystem::path name = std::filesystem::path(file).filename();
  if (name.extension() == ".gz") {
    name = name.stem();
  }
  return name.stem().string();
}

bool RunPlans(const ProfiledWorkload& loaded,
              const Cluster* cluster,
              const PlansToRun& what,
              const std::string& command,
              const std::function<void(const ExecutionCase&, const ExecutionResult&)>& done) {
  const ExecutionSettings settings = SettingsOf(what, command);
  if (!what.out.empty()) {
    RequireFolder("--out", what.out);
  }
  std::list<ExecutableForm> forms;
  const auto cases = LowerCases(loaded, cluster, what, forms);
  return ExecuteCases(cases, settings, [&](std::size_t index, const ExecutionResult& executed) {
    if (!what.out.empty()) {
      WriteFiles(what.out, cases[index], executed);
    }
    done(cases[index], executed);
  });
}

}  // namespace dcsim
