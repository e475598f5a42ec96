#include "sim/analysis/peak_holders.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// What is alive while the tasks' allocator calls are followed.
class Follower {
 public:
  explicit Follower(const Schedule& schedule)
      : schedule_(schedule),
        alive_(schedule.buffers().size()) {
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      const Buffer& buffer = schedule.buffers()[i];
      // Carried ones are those of the step before, until they are freed.
      alive_[i] = (buffer.resident && !buffer.on_host()) || buffer.carried ? 1 : 0;
      live_ += buffer.bytes * alive_[i];
    }
  }

  /// Follows until `stop` allocator calls have been made; notes the call after which most was
  /// alive.
  void Run(std::size_t stop) {
    std::size_t call = 0;
    most_ = live_;
    for (std::size_t i = 0; i < schedule_.task_count(); ++i) {
      for (const MemoryStep& step : schedule_.memory(TaskId(i))) {
        if (call++ == stop) {
          return;
        }
        const Bytes bytes = schedule_.buffer(step.buffer).bytes;
        // A carried buffer can be alive twice: from the step before, and from this one.
        alive_[step.buffer.index()] += step.frees ? -1 : 1;
        live_ += step.frees ? Bytes(0) - bytes : bytes;
        if (live_ > most_) {
          most_ = live_;
          most_call_ = call;
          most_task_ = TaskId(i);
        }
      }
    }
  }

  Bytes most() const { return most_; }
  std::size_t most_call() const { return most_call_; }
  TaskId most_task() const { return most_task_; }
  std::vector<BufferId> alive() const {
    std::vector<BufferId> ids;
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      for (int copy = 0; copy < alive_[i]; ++copy) {
        ids.emplace_back(i);
      }
    }
    return ids;
  }

 private:
  const Schedule& schedule_;
  std::vector<int> alive_;
  Bytes live_;
  Bytes most_;
  std::size_t most_call_ = 0;
  TaskId most_task_;
};

std::string OriginOf(const Buffer& buffer, const Graph& graph, const StepFacts& facts) {
  switch (buffer.buffer_class) {
    case BufferClass::kGatheredParameter:
      return WithoutNumbers(graph.param(ParamId(buffer.subject)).name);
    case BufferClass::kActivation:
    case BufferClass::kGradient:
    case BufferClass::kHeldOutput: {
      const OpId op = facts.producer[buffer.subject];
      if (op.is_none()) {
        return "";
      }
      const std::string module = WithoutNumbers(graph.modules[graph.op(op).module]);
      return std::string(graph.target(op)) + (module.empty() ? "" : " " + module);
    }
    default:
      return "";
  }
}

}  // namespace

std::string WithoutNumbers(const std::string& name) {
  std::string without;
  std::size_t part = 0;
  while (part <= name.size()) {
    const std::size_t end = std::min(name.find('.', part), name.size());
    const std::string piece = name.substr(part, end - part);
    const bool number =
        !piece.empty() && std::all_of(piece.begin(), piece.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    without += (part == 0 ? "" : ".") + (number ? "#" : piece);
    part = end + 1;
  }
  return without;
}

LivePeak FindLivePeak(const Schedule& schedule) {
  Follower whole(schedule);
  whole.Run(SIZE_MAX);
  Follower until(schedule);
  until.Run(whole.most_call());
  return {whole.most_task(), whole.most(), until.alive()};
}

std::vector<ClassBytes> BytesByClass(std::span<const BufferId> buffers, const Schedule& schedule) {
  std::vector<Bytes> sums(BufferClassNames().size());
  for (const BufferId id : buffers) {
    const Buffer& buffer = schedule.buffer(id);
    sums[static_cast<std::size_t>(buffer.buffer_class)] += buffer.bytes;
  }
  std::vector<ClassBytes> used;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] > Bytes(0)) {
      used.push_back({static_cast<BufferClass>(i), sums[i]});
    }
  }
  return used;
}

std::vector<HolderGroup> GroupHolders(const LivePeak& peak,
                                      const Schedule& schedule,
                                      const Graph& graph) {
  const StepFacts facts = AnalyseStep(graph);
  std::map<std::pair<BufferClass, std::string>, HolderGroup> by_origin;
  for (const BufferId id : peak.alive) {
    const Buffer& buffer = schedule.buffer(id);
    const std::string origin = OriginOf(buffer, graph, facts);
    HolderGroup& group = by_origin[{buffer.buffer_class, origin}];
    group.buffer_class = buffer.buffer_class;
    group.origin = origin;
    group.bytes += buffer.bytes;
    ++group.buffers;
  }
  std::vector<HolderGroup> groups;
  groups.reserve(by_origin.size());
  for (const auto& [key, group] : by_origin) {
    groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const HolderGroup& a, const HolderGroup& b) { return a.bytes > b.bytes; });
  return groups;
}

}  // namespace dcsim
