// dcsim._native: the questions of dc-sim, asked through the functions that dc-sim asks them with.
// Answers are the documents that dc-sim writes with --json; the package dcsim reads them.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sstream>
#include <string>

#include "dcsim_version.h"
#include "model/base/error.h"
#include "model/ir/result.h"
#include "tools/answers/fit_answer.h"
#include "tools/answers/report_answer.h"
#include "tools/answers/search_answer.h"
#include "tools/answers/sweep_answer.h"
#include "tools/common/answer_json.h"
#include "tools/common/interrupt.h"
#include "tools/common/program.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/dc_sim.h"
#include "tools/views/fit_text.h"

namespace dcsim {
namespace {

namespace nb = nanobind;

/// A document, and what was said of the inputs, a line each.
struct Answer {
  std::string json;
  std::string notes;
};

/// Runs `ask`, which returns a document and writes notes, without Python's lock. Throws Error and
/// SystemError with the messages of dc-sim.
template <typename Ask>
Answer AskFor(const std::string& what, const Ask& ask) {
  const nb::gil_scoped_release unlocked;
  try {
    std::ostringstream notes;
    const Json document = ask(notes);
    return {document.dump(), notes.str()};
  } catch (const std::exception&) {
    const Failure failure = FailureOfException(what);
    if (failure.code == ExitCode::kBadInput) {
      throw Error(failure.message);
    }
    throw SystemError(failure.message);
  }
}

/// The program dc-sim with its arguments, its name first. Returns its exit code.
int Run(const std::vector<std::string>& arguments) {
  const nb::gil_scoped_release unlocked;
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  return RunDcSim(static_cast<int>(argv.size()), argv.data());
}

Answer LoadFacts(const std::string& folder) {
  return AskFor("dcsim.load", [&](std::ostream&) {
    const Graph graph = LoadWorkload(folder).graph;
    Bytes bytes;
    for (const Param& param : graph.params) {
      bytes += graph.value(param.value).bytes();
    }
    return Json{{"folder", folder},
                {"name", graph.name},
                {"tokens", graph.tokens},
                {"parameters", graph.parameter_count()},
                {"parameter_tensors", graph.params.size()},
                {"parameter_bytes", bytes.count()},
                {"options", Json::parse(graph.notes.options, nullptr, /*allow_exceptions=*/false)}};
  });
}

Answer AskSimulate(const StepOptions& options) {
  return AskFor("dcsim.simulate", [&](std::ostream& notes) {
    const LoadedStep step = LoadStep(options, notes);
    return PrintResult(PredictPlan(step.plan, step.inputs()).result);
  });
}

/// What a page is about.
struct ReportQuestion {
  StepOptions step;
  std::vector<RivalStep> rivals;  // with times in ns and bytes
  std::string measured;           // a result's file or text; empty: none
};

/// A result, and the page about its step.
Answer AskReport(const ReportQuestion& question) {
  return AskFor("dcsim.report", [&](std::ostream& notes) {
    const LoadedStep step = LoadStep(question.step, notes);
    std::optional<Result> measured;
    if (!question.measured.empty()) {
      measured = LoadMeasuredResult(question.measured);
    }
    const StepReport report =
        ReportStep(step.plan, step.inputs(), question.rivals, std::move(measured));
    return Json{{"result", PrintResult(report.result)}, {"page", report.page}};
  });
}

Answer AskSweep(const SweepQuestion& question) {
  return AskFor("dcsim.sweep", [&](std::ostream& notes) {
    const SweepReport report = PredictSweep(ListSweep(question), question.threads, nullptr);
    for (const std::string& note : NotesOf(report)) {
      notes << note << "\n";
    }
    return PrintSweep(report);
  });
}

Answer AskFit(const FitQuestion& question) {
  return AskFor("dcsim.fit", [&](std::ostream& notes) {
    const LoadedStep step = LoadStep(question.step, notes);
    FitActivity activity;
    return PrintFit(AnswerFit(question, step, activity, notes));
  });
}

Answer AskSearch(const SearchQuestion& question) {
  return AskFor("dcsim.search", [&](std::ostream& notes) {
    const LoadedSearch loaded = LoadSearch(question, notes);
    const Interrupt interrupt;
    const SearchWatch watch{[&] { return interrupt.requested(); }, {}};
    return PrintSearchAnswer(AnswerSearch(question, loaded, watch, notes), loaded.workload.graph);
  });
}

void BindStep(nb::module_& module) {
  nb::class_<AskedSizes>(module, "AskedSizes")
      .def_rw("batch", &AskedSizes::batch)
      .def_rw("sequence", &AskedSizes::sequence);
  nb::enum_<OpTimes>(module, "OpTimes")
      .value("PROFILED", OpTimes::kProfiled)
      .value("ROOFLINE", OpTimes::kRoofline);
  nb::class_<StepOptions>(module, "StepOptions")
      .def(nb::init<>())
      .def_rw("workload", &StepOptions::workload)
      .def_rw("sizes", &StepOptions::sizes)
      .def_rw("cluster", &StepOptions::cluster)
      .def_rw("plan", &StepOptions::plan)
      .def_rw("gpus", &StepOptions::gpus)
      .def_rw("times", &StepOptions::times)
      .def_rw("overrides", &StepOptions::overrides)
      .def_rw("cluster_overrides", &StepOptions::cluster_overrides);
}

void BindReport(nb::module_& module) {
  nb::class_<RivalStep>(module, "RivalStep")
      .def("__init__",
           [](RivalStep* rival, const std::string& name, std::int64_t ns, std::int64_t bytes) {
             new (rival) RivalStep{name, Duration::FromNs(ns), Bytes(bytes)};
           });
  nb::class_<ReportQuestion>(module, "ReportQuestion")
      .def(nb::init<>())
      .def_rw("step", &ReportQuestion::step)
      .def_rw("rivals", &ReportQuestion::rivals)
      .def_rw("measured", &ReportQuestion::measured);
}

void BindQuestions(nb::module_& module) {
  nb::class_<SweepQuestion>(module, "SweepQuestion")
      .def(nb::init<>())
      .def_rw("step", &SweepQuestion::step)
      .def_rw("plans", &SweepQuestion::plans)
      .def_rw("vary", &SweepQuestion::vary)
      .def_rw("threads", &SweepQuestion::threads);
  nb::class_<FitQuestion>(module, "FitQuestion")
      .def(nb::init<>())
      .def_rw("step", &FitQuestion::step)
      .def_rw("record", &FitQuestion::record)
      .def_rw("threads", &FitQuestion::threads);
  nb::class_<SearchQuestion>(module, "SearchQuestion")
      .def(nb::init<>())
      .def_rw("workload", &SearchQuestion::workload)
      .def_rw("sizes", &SearchQuestion::sizes)
      .def_rw("cluster", &SearchQuestion::cluster)
      .def_rw("cluster_overrides", &SearchQuestion::cluster_overrides)
      .def_rw("times", &SearchQuestion::times)
      .def_rw("space", &SearchQuestion::space)
      .def_rw("backend", &SearchQuestion::backend)
      .def_rw("memory_limit", &SearchQuestion::memory_limit)
      .def_rw("baseline", &SearchQuestion::baseline)
      .def_rw("starts", &SearchQuestion::starts)
      .def_rw("gpus", &SearchQuestion::gpus)
      .def_rw("threads", &SearchQuestion::threads)
      .def_rw("seed", &SearchQuestion::seed)
      .def_rw("schedules", &SearchQuestion::schedules)
      .def_rw("time", &SearchQuestion::time)
      .def_rw("exhaustive", &SearchQuestion::exhaustive);
}

}  // namespace
}  // namespace dcsim

NB_MODULE(_native, module) {
  namespace nb = nanobind;
  module.attr("version") = dcsim::kVersion;
  module.attr("version_and_commit") = dcsim::AnsweringVersion().at("dc-sim").get<std::string>();
  nb::exception<dcsim::Error>(module, "InputError", PyExc_ValueError);
  nb::exception<dcsim::SystemError>(module, "SystemFailure", PyExc_OSError);
  nb::class_<dcsim::Answer>(module, "Answer")
      .def_ro("json", &dcsim::Answer::json)
      .def_ro("notes", &dcsim::Answer::notes);
  dcsim::BindStep(module);
  dcsim::BindReport(module);
  dcsim::BindQuestions(module);
  module.def("run", &dcsim::Run);
  module.def("load", &dcsim::LoadFacts);
  module.def("simulate", &dcsim::AskSimulate);
  module.def("report", &dcsim::AskReport);
  module.def("sweep", &dcsim::AskSweep);
  module.def("fit", &dcsim::AskFit);
  module.def("search", &dcsim::AskSearch);
}
