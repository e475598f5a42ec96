#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace dcsim {

/// Exit codes of both programs.
enum class ExitCode : int { kDone = 0, kAnswerIsNo = 1, kBadInput = 2, kSystemFailure = 3 };

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
