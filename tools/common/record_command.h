#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// The command of dcrecord that made a graph, to be changed so that it makes another one.
class RecordCommand {
 public:
  /// Knows none where it was a running job that was recorded.
  explicit RecordCommand(const Graph& graph);

  /// Gives an option ("--batch") the value; one that is not there comes before "-o".
  RecordCommand& Set(const std::string& option, const std::string& value);
  /// Gives an option that takes no value.
  RecordCommand& SetFlag(const std::string& flag);
  /// Takes an option away, as often as it is there, with its value.
  RecordCommand& Remove(const std::string& option);
  /// Takes an option without value away.
  RecordCommand& RemoveFlag(const std::string& flag);
  /// Gives the workload a name with the size in it: "-batch4" in the place of the old one, or
  /// behind the name.
  RecordCommand& NameSize(const std::string& key, std::int64_t own, std::int64_t asked);
  /// Adds to the workload's name, once.
  RecordCommand& NameSuffix(const std::string& suffix);

  /// The command as words, with the name as --name and the last part of -o, in that folder. Empty
  /// where the graph does not say how it was recorded.
  std::vector<std::string> Words(const std::string& folder) const;
  /// The same as a shell takes it.
  std::string Text(const std::string& folder) const;
  /// The same in the folder where the recording was put.
  std::string Text() const;
  /// The same with -o as that very folder.
  std::string TextInto(const std::string& folder) const;

 private:
  std::vector<std::string> words_;
  std::string name_;
};

}  // namespace dcsim
