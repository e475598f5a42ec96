#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dcsim {

/// Exit codes of both programs.
enum class ExitCode : int { kDone = 0, kAnswerIsNo = 1, kBadInput = 2, kSystemFailure = 3 };

/// Why something that was asked for was not done, for the person who asked.
struct Failure {
  ExitCode code = ExitCode::kBadInput;
  std::string message;
};

/// Of the exception that is being handled. What nobody has foreseen ends as what it most likely is:
/// a document of another shape is bad input; threads, files and memory belong to the machine.
///
///   running   names what ran: "dc-sim simulate"
Failure FailureOfException(const std::string& running);

/// One subcommand: declares its options on a CLI11 app of its own and gives back what runs it.
struct Subcommand {
  std::string name;
  std::string summary;
  std::string examples;  // lines under "Examples" in its help
  std::function<std::function<ExitCode()>(CLI::App&)> declare;
};

/// A program of subcommands.
struct Program {
  std::string name;
  std::string summary;
  std::string libraries;  // "yaml-cpp 0.7.0, …", for --version
  std::vector<Subcommand> subcommands;
};

/// Parses the command line, runs the subcommand, and turns every error into one message on stderr
/// and its exit code. Unknown options and subcommands name the nearest known one.
int RunProgram(const Program& program, int argc, const char* const* argv);

}  // namespace dcsim
