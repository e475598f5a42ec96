#include "tools/common/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <map>
#include <optional>

#include "dcsim_version.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/document.h"
#include "model/ir/plan_options.h"
#include "tools/common/utf8.h"

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

/// "; a plan has it: --set stage=VALUE" for the key of a plan, written as an option of a command
/// that changes plans.
std::string PlanKeyHint(const CLI::App& app, const std::string& option) {
  std::string key = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  const std::vector<std::string_view>& keys = PlanOptionKeys();
  const bool found = std::find(keys.begin(), keys.end(), key) != keys.end();
  const bool changes = app.get_option_no_throw("--set") != nullptr;
  return found && changes ? "; a plan has it: --set " + key + "=VALUE" : "";
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
  const std::string hint = option ? PlanKeyHint(chosen, name) : "";
  return what + name + "'" + (hint.empty() ? DidYouMean(name, views) : hint);
}

int Fail(const std::string& who, const Failure& failure) {
  std::cerr << who << ": " << failure.message << "\n";
  return Code(failure.code);
}

int FailForInput(const std::string& who, const std::string& message) {
  return Fail(who, {ExitCode::kBadInput, ForTerminal(message)});
}

/// Everything that was printed is out.
void FlushStandardOutput() {
  std::cout.flush();
  if (!std::cout) {
    throw SystemError("cannot write to standard output");
  }
}

/// `what` names the subcommand.
int RunGuarded(const std::string& who,
               const std::string& what,
               const std::function<ExitCode()>& run) {
  try {
    const ExitCode code = run();
    FlushStandardOutput();
    return Code(code);
  } catch (const std::exception&) {
    return Fail(who, FailureOfException(what));
  }
}

/// Help and version are no errors; everything else is bad input.
int ReportParseError(const Program& program, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    return RunGuarded(program.name, program.name, [&] {
      app.exit(error, std::cout, std::cerr);
      return ExitCode::kDone;
    });
  }
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  std::string message = extra ? DescribeExtra(app) : std::string(error.what());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !app.remaining(true).empty()) {
    message = DescribeExtra(app);  // a misspelt name is why something required is missing
  }
  const CLI::App& chosen = ChosenApp(app);
  const std::string help = &chosen == &app ? program.name : program.name + " " + chosen.get_name();
  return FailForInput(program.name, message + "\nSee " + help + " --help");
}

/// A closed standard stream's number would go to the next file that is opened, and that file would
/// get what is printed: holds the number with something that cannot be written.
void HoldStandardStreams() {
  for (int file = 0; file <= 2; ++file) {
    if (::fcntl(file, F_GETFD) < 0) {
      ::open("/dev/null", O_RDONLY);  // gets the lowest free number, this one
    }
  }
}

/// An option without text, such as `--plan "$UNSET"`, is a mistake and not one that is left out.
std::optional<std::string> FindEmptyOption(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& texts = option->results();
    if (std::any_of(texts.begin(), texts.end(), [](const auto& text) { return text.empty(); })) {
      return option->get_name();
    }
  }
  return std::nullopt;
}

}  // namespace

Failure FailureOfException(const std::string& running) {
  const std::string during = "while running " + running + ": ";
  try {
    throw;
  } catch (const Error& error) {
    return {ExitCode::kBadInput, ForTerminal(error.what())};
  } catch (const SystemError& error) {
    return {ExitCode::kSystemFailure, ForTerminal(error.what())};
  } catch (const Json::exception& error) {
    return {ExitCode::kBadInput,
            ForTerminal(during + "a document holds what it should not: " + error.what())};
  } catch (const std::bad_alloc&) {
    return {ExitCode::kSystemFailure, during + "out of host memory"};
  } catch (const std::exception& error) {
    return {ExitCode::kSystemFailure, ForTerminal(during + error.what())};
  }
}

int RunProgram(const Program& program, int argc, const char* const* argv) {
  HoldStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is a failed write
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
  const CLI::App* chosen = app.get_subcommands().front();
  if (const auto empty = FindEmptyOption(*chosen)) {
    return FailForInput(program.name, *empty + ": expected a value, found an empty text");
  }
  return RunGuarded(program.name, program.name + " " + chosen->get_name(), runs.at(chosen));
}

}  // namespace dcsim
