#include "tools/common/recorded_sizes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include "model/base/error.h"
#include "model/ir/graph_reader.h"
#include "tools/common/compiled_form.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/record_command.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

std::optional<Recording> FindRecording(const std::string& folder, const Graph& graph) {
  Json options = Json::parse(graph.notes.options, nullptr, /*allow_exceptions=*/false);
  const auto is_size = [&options](const char* key) {
    return options.is_object() && options.contains(key) && options[key].is_number_integer();
  };
  if (!is_size("batch") || !is_size("sequence")) {
    return std::nullopt;
  }
  const Json checkpointing = options.value("activation_checkpointing", Json(false));
  Recording recording{folder,
                      options["batch"],
                      options["sequence"],
                      checkpointing,
                      options.value("hold", Json::array()),
                      {}};
  // Not every recording has a hidden size.
  for (const char* key : {"batch", "sequence", "activation_checkpointing", "hold", "hidden_size"}) {
    options.erase(key);
  }
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

/// Whether the text of a graph may hold this graph's parameters: reading it whole takes far longer.
/// Names that JSON may write in several ways say nothing.
bool MayHoldParams(const std::string& text, const Graph& graph) {
  const auto holds = [&text](const std::string& name) {
    return name.find_first_of("\\\"/") != std::string::npos ||
           text.find('"' + name + '"') != std::string::npos;
  };
  return graph.params.empty() ||
         (holds(graph.params.front().name) && holds(graph.params.back().name));
}

std::string Describe(std::int64_t batch, std::int64_t sequence) {
  return "batch " + std::to_string(batch) + " and sequence " + std::to_string(sequence);
}

bool HasForms(const std::string& folder) {
  return FileExists(FormFile(folder, 1)) && FileExists(FormFile(folder, 3));
}

[[noreturn]] void FailUnrecorded(RecordingShelf& shelf, const AskedSizes& sizes) {
  const Workload& workload = shelf.workload();
  std::string text = "no recording of " + workload.graph.name + " with " +
                     Describe(sizes.batch, sizes.sequence) + " in " +
                     ParentOf(workload.folder).string() + "; recorded:";
  for (const Recording& each : shelf.OtherSizes()) {
    text += "\n  " + each.folder + ": " + Describe(each.batch, each.sequence);
  }
  const std::string command = shelf.Command({sizes, {}, false});
  throw Error(command.empty() ? text : text + "\nThis command records it:\n  " + command);
}

}  // namespace

void DeclareSizes(CLI::App& app, AskedSizes& sizes) {
  AddCount(app, "--batch", sizes.batch, {},
           "sequences of a micro-step: takes the recording of WORKLOAD's model that has them "
           "from the folders beside it");
  AddCount(app, "--seq", sizes.sequence, {}, "the same for the tokens of a sequence");
}

RecordingShelf::RecordingShelf(Workload workload, Backend backend)
    : workload_(std::move(workload)),
      backend_(backend),
      own_(FindRecording(workload_.folder, workload_.graph)) {}

/// By folder; folders without a readable graph are none.
const std::vector<Recording>& RecordingShelf::Siblings() {
  if (siblings_) {
    return *siblings_;
  }
  siblings_.emplace();
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(ParentOf(workload_.folder), ignored)) {
    folders.push_back(entry.path().lexically_normal().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    try {
      const std::string path = GraphFile(folder);
      const std::string text = ReadFile(path);
      if (!MayHoldParams(text, workload_.graph)) {
        continue;
      }
      const Graph graph = ParseGraph(text, path);
      auto recording = FindRecording(folder, graph);
      if (own_ && recording && recording->others == own_->others &&
          SameParams(workload_.graph, graph)) {
        siblings_->push_back(*std::move(recording));
      }
    } catch (const Error&) {
      continue;
    }
  }
  return *siblings_;
}

std::optional<std::string> RecordingShelf::Find(const AskedRecording& asked) {
  if (!own_) {
    return std::nullopt;
  }
  const auto is_asked = [&](const Recording& each) {
    return each.batch == (asked.sizes.batch == 0 ? own_->batch : asked.sizes.batch) &&
           each.sequence == (asked.sizes.sequence == 0 ? own_->sequence : asked.sizes.sequence) &&
           each.checkpointing ==
               (asked.checkpointing ? Json(*asked.checkpointing) : own_->checkpointing) &&
           each.hold == (asked.hold_none ? Json::array() : own_->hold) &&
           (backend_ == Backend::kAten || each.folder == own_->folder || HasForms(each.folder));
  };
  if (is_asked(*own_)) {
    return own_->folder;
  }
  const auto& siblings = Siblings();
  const auto found = std::find_if(siblings.begin(), siblings.end(), is_asked);
  return found == siblings.end() ? std::nullopt : std::optional(found->folder);
}

std::vector<Recording> RecordingShelf::OtherSizes() {
  std::vector<Recording> others;
  for (const Recording& each : Siblings()) {
    if (each.checkpointing == own_->checkpointing && each.hold == own_->hold) {
      others.push_back(each);
    }
  }
  return others;
}

std::vector<std::string> RecordingShelf::Words(const AskedRecording& asked) const {
  return Changed(asked).Words(ParentOf(workload_.folder).string());
}

std::string RecordingShelf::Command(const AskedRecording& asked) const {
  return Changed(asked).Text(ParentOf(workload_.folder).string());
}

RecordCommand RecordingShelf::Changed(const AskedRecording& asked) const {
  RecordCommand command(workload_.graph);
  if (asked.sizes.batch != 0 && asked.sizes.batch != own_->batch) {
    command.NameSize("batch", own_->batch, asked.sizes.batch)
        .Set("--batch", std::to_string(asked.sizes.batch));
  }
  if (asked.sizes.sequence != 0 && asked.sizes.sequence != own_->sequence) {
    command.NameSize("seq", own_->sequence, asked.sizes.sequence)
        .Set("--seq", std::to_string(asked.sizes.sequence));
  }
  if (asked.checkpointing && Json(*asked.checkpointing) != own_->checkpointing) {
    command.Remove("--checkpoint").RemoveFlag("--activation-checkpointing");
    if (*asked.checkpointing) {
      command.SetFlag("--activation-checkpointing").NameSuffix("-checkpointing");
    } else {
      command.NameSuffix("-without-checkpointing");
    }
  }
  if (asked.hold_none && own_->hold != Json::array()) {
    command.Remove("--hold").Set("--hold", "none").NameSuffix("-hold-none");
  }
  if (backend_ == Backend::kInductor || HasForms(workload_.folder)) {
    command.Set("--backend", "inductor");
  }
  return command;
}

Workload LoadWorkload(const std::string& folder, const AskedSizes& sizes, std::ostream& notes) {
  Workload workload = LoadWorkload(folder);
  if (sizes.batch == 0 && sizes.sequence == 0) {
    return workload;
  }
  RecordingShelf shelf(std::move(workload));
  if (!shelf.own()) {
    throw Error(folder + ": the graph does not say its batch and sequence, so no recording with " +
                "others can be found; name its folder instead of --batch and --seq");
  }
  const AskedSizes all{sizes.batch == 0 ? shelf.own()->batch : sizes.batch,
                       sizes.sequence == 0 ? shelf.own()->sequence : sizes.sequence};
  const auto found = shelf.Find({all, {}, false});
  if (!found) {
    FailUnrecorded(shelf, all);
  }
  if (*found != folder) {
    notes << *found << ": recorded with " << Describe(all.batch, all.sequence) << "\n";
  }
  return *found == folder ? shelf.workload() : LoadWorkload(*found);
}

}  // namespace dcsim
