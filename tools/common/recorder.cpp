#include "tools/common/recorder.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/error.h"

namespace dcsim {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// The last line with something in it.
std::string LastLine(std::FILE* file) {
  std::rewind(file);
  std::string line;
  std::string last;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    if (c != '\n' && c != '\r') {
      line += static_cast<char>(c);
      continue;
    }
    last = line.empty() ? last : line;
    line.clear();
  }
  return line.empty() ? last : line;
}

/// In the child: never returns.
[[noreturn]] void Become(const std::string& program, std::vector<char*>& arguments, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(program.c_str(), arguments.data());
  _exit(127);
}

}  // namespace

std::optional<std::string> FindRecorder() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/dcrecord";
    if (access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return std::nullopt;
}

std::string RunRecorder(const std::string& recorder, const std::vector<std::string>& words) {
  constexpr std::size_t kLead = 3;  // python -m dcrecord
  if (words.size() <= kLead || words[1] != "-m" || words[2] != "dcrecord") {
    return "the workload's command is none of dcrecord's";
  }
  std::vector<std::string> texts = {recorder};
  texts.insert(texts.end(), words.begin() + kLead, words.end());
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    arguments.push_back(text.data());
  }
  arguments.push_back(nullptr);
  const File output(std::tmpfile(), &std::fclose);
  if (!output) {
    throw SystemError(std::string("no temporary file: ") + std::strerror(errno));
  }
  const pid_t child = fork();
  if (child < 0) {
    throw SystemError(std::string("fork: ") + std::strerror(errno));
  }
  if (child == 0) {
    Become(recorder, arguments, fileno(output.get()));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return "";
  }
  const std::string last = LastLine(output.get());
  return last.empty() ? "dcrecord failed without a word" : last;
}

}  // namespace dcsim
