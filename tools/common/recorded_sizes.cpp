#include "tools/common/recorded_sizes.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "model/base/error.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/record_command.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// What a graph was recorded with.
struct Recording {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  Json others;  // options besides the sizes
};

/// Nothing for a graph that the recorder did not write.
std::optional<Recording> FindRecording(const Graph& graph) {
  Json options = Json::parse(graph.notes.options, nullptr, /*allow_exceptions=*/false);
  const auto is_size = [&options](const char* key) {
    return options.is_object() && options.contains(key) && options[key].is_number_integer();
  };
  if (!is_size("batch") || !is_size("sequence")) {
    return std::nullopt;
  }
  Recording recording{options["batch"], options["sequence"], {}};
  options.erase("batch");
  options.erase("sequence");
  options.erase("hidden_size");  // not every recording has it
  recording.others = std::move(options);
  return recording;
}

bool SameParams(const Graph& a, const Graph& b) {
  const auto same = [&](const Param& one, const Param& other) {
    return one.name == other.name && a.value(one.value).dtype == b.value(other.value).dtype &&
           a.value(one.value).shape == b.value(other.value).shape;
  };
  return std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same);
}

/// The folder in which a workload's folder lies.
fs::path ParentOf(const std::string& folder) {
  fs::path clean = fs::path(folder).lexically_normal();
  clean = clean.filename().empty() ? clean.parent_path() : clean;
  if (clean.filename() == "." || clean.filename() == "..") {
    return clean / "..";
  }
  return clean.parent_path().empty() ? fs::path(".") : clean.parent_path();
}

/// Recordings of the same model beside the workload, by name; folders without a readable graph are
/// none.
std::vector<Workload> Siblings(const Workload& workload, const Recording& own) {
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(ParentOf(workload.folder), ignored)) {
    folders.push_back(entry.path().lexically_normal().string());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<Workload> siblings;
  for (const std::string& folder : folders) {
    try {
      Workload other = LoadWorkload(folder);
      const auto recording = FindRecording(other.graph);
      if (recording && recording->others == own.others && SameParams(workload.graph, other.graph)) {
        siblings.push_back(std::move(other));
      }
    } catch (const Error&) {
      continue;
    }
  }
  return siblings;
}

std::string Describe(std::int64_t batch, std::int64_t sequence) {
  return "batch " + std::to_string(batch) + " and sequence " + std::to_string(sequence);
}

/// The workload's command with other sizes and another place.
std::string CommandFor(const Workload& workload,
                       const Recording& own,
                       std::int64_t batch,
                       std::int64_t sequence) {
  RecordCommand command(workload.graph);
  command.NameSize("batch", own.batch, batch).NameSize("seq", own.sequence, sequence);
  if (own.batch != batch) {
    command.Set("--batch", std::to_string(batch));
  }
  if (own.sequence != sequence) {
    command.Set("--seq", std::to_string(sequence));
  }
  return command.Text(ParentOf(workload.folder).string());
}

[[noreturn]] void FailUnrecorded(const Workload& workload,
                                 const std::vector<Workload>& siblings,
                                 const Recording& own,
                                 std::int64_t batch,
                                 std::int64_t sequence) {
  std::string text = "no recording of " + workload.graph.name + " with " +
                     Describe(batch, sequence) + " in " + ParentOf(workload.folder).string() +
                     "; recorded:";
  for (const Workload& each : siblings) {
    const Recording recording = *FindRecording(each.graph);
    text += "\n  " + each.folder + ": " + Describe(recording.batch, recording.sequence);
  }
  if (!workload.graph.notes.command.empty()) {
    text += "\nThis command records it:\n  " + CommandFor(workload, own, batch, sequence);
  }
  throw Error(text);
}

}  // namespace

void DeclareSizes(CLI::App& app, AskedSizes& sizes) {
  AddCount(app, "--batch", sizes.batch, {},
           "sequences of a micro-step: takes the recording of WORKLOAD's model that has them "
           "from the folders beside it");
  AddCount(app, "--seq", sizes.sequence, {}, "the same for the tokens of a sequence");
}

Workload LoadWorkload(const std::string& folder, const AskedSizes& sizes, std::ostream& notes) {
  Workload workload = LoadWorkload(folder);
  if (sizes.batch == 0 && sizes.sequence == 0) {
    return workload;
  }
  const auto own = FindRecording(workload.graph);
  if (!own) {
    throw Error(folder + ": the graph does not say its batch and sequence, so no recording with " +
                "others can be found; name its folder instead of --batch and --seq");
  }
  const std::int64_t batch = sizes.batch == 0 ? own->batch : sizes.batch;
  const std::int64_t sequence = sizes.sequence == 0 ? own->sequence : sizes.sequence;
  if (batch == own->batch && sequence == own->sequence) {
    return workload;
  }
  std::vector<Workload> siblings = Siblings(workload, *own);
  for (Workload& each : siblings) {
    const Recording recording = *FindRecording(each.graph);
    if (recording.batch == batch && recording.sequence == sequence) {
      notes << each.folder << ": recorded with " << Describe(batch, sequence) << "\n";
      return std::move(each);
    }
  }
  FailUnrecorded(workload, siblings, *own, batch, sequence);
}

}  // namespace dcsim
