#include "tools/common/program.h"

#include <iostream>
#include <map>

#include "dcsim_version.h"
#include "model/base/error.h"
#include "model/base/text.h"

namespace dcsim {
namespace {

int Code(ExitCode code) {
  return static_cast<int>(code);
}

std::string VersionText(const Program& program) {
  return program.name + " " + kVersion + " (commit " + kCommit + "; " + program.libraries + ")";
}

/// Names of an app's options, as the user writes them, and of its subcommands.
std::vector<std::string> KnownNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  for (const CLI::App* subcommand : app.get_subcommands({})) {
    names.push_back(subcommand->get_name());
  }
  return names;
}

const CLI::App& ChosenApp(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

/// "unknown option '--clutser', did you mean '--cluster'?" for the first argument that nothing
/// took.
std::string DescribeExtra(const CLI::App& app) {
  const CLI::App& chosen = ChosenApp(app);
  const auto extras = app.remaining(true);
  if (extras.empty()) {
    return "unexpected argument";
  }
  const std::string name = extras.front().substr(0, extras.front().find('='));
  const auto known = KnownNames(chosen);
  const std::vector<std::string_view> views(known.begin(), known.end());
  const bool option = name.starts_with("-");
  const std::string what = option            ? "unknown option '"
                           : &chosen == &app ? "unknown command '"
                                             : "unexpected argument '";
  return what + name + "'" + DidYouMean(name, views);
}

/// Help and version are no errors; everything else is bad input.
int ReportParseError(const Program& program, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    return app.exit(error, std::cout, std::cerr) == 0 ? Code(ExitCode::kDone)
                                                      : Code(ExitCode::kBadInput);
  }
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  std::string message = extra ? DescribeExtra(app) : std::string(error.what());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !app.remaining(true).empty()) {
    message = DescribeExtra(app);  // a misspelt name is why something required is missing
  }
  const CLI::App& chosen = ChosenApp(app);
  const std::string help = &chosen == &app ? program.name : program.name + " " + chosen.get_name();
  std::cerr << program.name << ": " << message << "\nSee " << help << " --help\n";
  return Code(ExitCode::kBadInput);
}

int RunGuarded(const Program& program, const std::function<ExitCode()>& run) {
  try {
    return Code(run());
  } catch (const Error& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    return Code(ExitCode::kBadInput);
  } catch (const SystemError& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    return Code(ExitCode::kSystemFailure);
  } catch (const std::bad_alloc&) {
    std::cerr << program.name << ": out of host memory\n";
    return Code(ExitCode::kSystemFailure);
  }
}

}  // namespace

int RunProgram(const Program& program, int argc, const char* const* argv) {
  CLI::App app(program.summary, program.name);
  app.set_version_flag("--version", VersionText(program));
  app.require_subcommand(1);
  std::map<const CLI::App*, std::function<ExitCode()>> runs;
  for (const Subcommand& subcommand : program.subcommands) {
    CLI::App* own = app.add_subcommand(subcommand.name, subcommand.summary);
    own->footer("Examples:\n" + subcommand.examples);
    runs[own] = subcommand.declare(*own);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(program, app, error);
  }
  return RunGuarded(program, runs.at(app.get_subcommands().front()));
}

}  // namespace dcsim
