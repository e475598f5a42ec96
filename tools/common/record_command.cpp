#include "tools/common/record_command.h"

#include <algorithm>
#include <filesystem>

namespace dcsim {
namespace {

namespace fs = std::filesystem;

void SetOption(const std::string& option, const std::string& value, std::string& command) {
  const std::string lead = " " + option + " ";
  const std::size_t at = command.find(lead);
  if (at != std::string::npos) {
    const std::size_t begin = at + lead.size();
    command.replace(begin, std::min(command.find(' ', begin), command.size()) - begin, value);
    return;
  }
  command.insert(std::min(command.rfind(" -o "), command.size()), lead + value);
}

}  // namespace

RecordCommand::RecordCommand(const Graph& graph)
    : command_(graph.notes.command),
      name_(graph.name) {}

RecordCommand& RecordCommand::Set(const std::string& option, const std::string& value) {
  SetOption(option, value, command_);
  return *this;
}

RecordCommand& RecordCommand::NameSize(const std::string& key,
                                       std::int64_t own,
                                       std::int64_t asked) {
  if (own != asked) {
    const std::string old = "-" + key + std::to_string(own);
    const std::size_t at = name_.rfind(old);
    const bool named = at != std::string::npos;
    name_.replace(named ? at : name_.size(), named ? old.size() : 0,
                  "-" + key + std::to_string(asked));
  }
  return *this;
}

RecordCommand& RecordCommand::NameSuffix(const std::string& suffix) {
  if (!name_.ends_with(suffix)) {
    name_ += suffix;
  }
  return *this;
}

std::string RecordCommand::Text(const std::string& folder) const {
  if (command_.empty()) {
    return {};
  }
  std::string command = command_;
  SetOption("--name", name_, command);
  SetOption("-o", (fs::path(folder) / name_).lexically_normal().string(), command);
  return command;
}

std::string RecordCommand::Text() const {
  const std::size_t at = command_.rfind(" -o ");
  const std::string place = at == std::string::npos ? name_ : command_.substr(at + 4);
  const fs::path clean = fs::path(place).lexically_normal();
  const fs::path named = clean.filename().empty() ? clean.parent_path() : clean;
  return Text(named.parent_path().string());
}

}  // namespace dcsim
