#pragma once

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/load.h"
#include "tools/common/record_command.h"

namespace CLI {
class App;
}

namespace dcsim {

/// The sizes of a micro-step that a what-if asks for; 0: those of the workload.
struct AskedSizes {
  std::int64_t batch = 0;     // sequences, or rows
  std::int64_t sequence = 0;  // tokens of a sequence
};

/// Declares --batch and --seq, as dcrecord calls them.
void DeclareSizes(CLI::App& app, AskedSizes& sizes);

/// A recording of a workload's model; what is left out is the workload's own.
struct AskedRecording {
  AskedSizes sizes;
  std::optional<bool> checkpointing;  // of every block
  bool hold_none = false;             // the caller keeps no output until the next step
};

/// What a graph was recorded with.
struct Recording {
  std::string folder;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  Json checkpointing;  // false, true or a list of patterns
  Json hold;           // names of held outputs
  Json others;         // the other options
};

/// The recordings of one model: a workload's, and those in the folders beside it.
///
/// A graph holds for its sizes only, so none is derived from another. A recording belongs to the
/// same model when its parameters and the recorder's other options are the same.
class RecordingShelf {
 public:
  /// With inductor other recordings count only with their compiled forms.
  explicit RecordingShelf(Workload workload, Backend backend = Backend::kAten);

  /// Nothing for a graph that the recorder did not write, or not with sizes.
  const std::optional<Recording>& own() const { return own_; }
  const Workload& workload() const { return workload_; }

  /// The folder that has it, the workload's own before others, then by name.
  std::optional<std::string> Find(const AskedRecording& asked);
  /// The recordings of the model whose options besides the sizes are the workload's, by folder.
  std::vector<Recording> OtherSizes();

  /// The command that records it, as words: in the folder in which the workload's folder lies.
  /// Empty where the workload does not say how it was recorded.
  std::vector<std::string> Words(const AskedRecording& asked) const;
  /// The same as a shell takes it.
  std::string Command(const AskedRecording& asked) const;

  /// Looks at the folders again at the next question.
  void Forget() { siblings_.reset(); }

 private:
  const std::vector<Recording>& Siblings();
  RecordCommand Changed(const AskedRecording& asked) const;

  Workload workload_;
  Backend backend_;
  std::optional<Recording> own_;
  std::optional<std::vector<Recording>> siblings_;
};

/// The workload of a folder; where it has other sizes than asked for, the recording that has them
/// (RecordingShelf). Which one that is goes to `notes`. Throws Error where there is none, with the
/// sizes that are recorded and the command that records these.
Workload LoadWorkload(const std::string& folder,
                      const AskedSizes& sizes,
                      std::ostream& notes = std::cerr);

}  // namespace dcsim
