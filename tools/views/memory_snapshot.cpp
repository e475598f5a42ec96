#include "tools/views/memory_snapshot.h"

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "model/graph/step_facts.h"
#include "model/ir/task_label.h"
#include "tools/common/pickle.h"

namespace dcsim {
namespace {

/// Addresses end where those of a process do: above 2^53 JavaScript would round them.
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 47U) - 1;

std::int64_t AddressOf(const AllocatorCall& call) {
  return static_cast<std::int64_t>(call.address & kAddressMask);
}

bool OfSegment(AllocatorAction action) {
  return action >= AllocatorAction::kSegmentAlloc && action <= AllocatorAction::kSegmentUnmap;
}

std::string_view ActionName(AllocatorAction action) {
  constexpr std::array<std::string_view, 8> kNames = {
      "alloc",        "free_requested", "free_completed", "segment_alloc",
      "segment_free", "segment_map",    "segment_unmap",  "oom"};
  return kNames[static_cast<std::size_t>(action)];
}

/// One frame of Python's, as far as viewers show it.
struct SnapshotFrame {
  std::string filename;
  std::string name;
  std::int64_t line = 0;

  auto operator<=>(const SnapshotFrame&) const = default;
};

/// Writes a snapshot event by event, and knows the memory at its end.
class SnapshotWriter {
 public:
  SnapshotWriter(const Schedule& schedule, const Graph& graph)
      : schedule_(schedule),
        graph_(graph),
        facts_(AnalyseStep(graph)) {}

  std::string Write(std::span<const AllocatorEvent> events) {
    pickle_.BeginDict();
    pickle_.Add("device_traces");
    pickle_.BeginList();
    pickle_.BeginList();
    for (const AllocatorEvent& event : events) {
      WriteEvent(event);
      pickle_.Append();
    }
    pickle_.Append();
    pickle_.Add("segments");
    pickle_.BeginList();
    for (const auto& [address, segment] : segments_) {
      WriteSegment(address, segment);
      pickle_.Append();
    }
    pickle_.Add("allocator_settings");
    pickle_.BeginDict();
    Pair("expandable_segments", expandable());
    pickle_.EndDict();
    pickle_.Add("external_annotations");
    pickle_.BeginList();
    pickle_.EndDict();
    return std::move(pickle_).Finish();
  }

 private:
  struct SnapshotBlock {
    AllocatorCall call;
    SnapshotFrame frame;
    bool freed = false;  // and some stream still uses it
  };

  bool expandable() const {
    return schedule_.options().allocator == AllocatorMode::kExpandableSegments;
  }

  template <typename Value>
  void Pair(const char* key, Value value) {
    pickle_.Add(key);
    pickle_.Add(value);
  }

  SnapshotFrame FrameOfOp(std::string_view tensor, OpId op) const {
    const std::string& module = graph_.modules[graph_.op(op).module];
    return {module.empty() ? "outside of modules" : module,
            std::string(tensor) + " " + std::string(graph_.target(op)),
            static_cast<std::int64_t>(op.index())};
  }

  /// Who brings a buffer to life: its op, or its parameter, or the task.
  SnapshotFrame FrameOf(BufferId id, TaskId task) const {
    const Buffer& buffer = schedule_.buffer(id);
    const std::string_view tensor = BufferClassName(buffer.buffer_class);
    switch (buffer.buffer_class) {
      case BufferClass::kGatheredParameter:
        return {graph_.param(ParamId(buffer.subject)).name, std::string(tensor), buffer.subject};
      case BufferClass::kActivation:
      case BufferClass::kGradient:
      case BufferClass::kHeldOutput:
        if (const OpId op = facts_.producer[buffer.subject]; !op.is_none()) {
          return FrameOfOp(tensor, op);
        }
        break;
      default:
        break;
    }
    if (task.is_none()) {
      return {"before the first step", std::string(tensor), static_cast<std::int64_t>(id.index())};
    }
    const Task& made_by = schedule_.task(task);
    if (made_by.kind == TaskKind::kCompute) {
      return FrameOfOp(tensor, OpId(schedule_.work(made_by.work).subject));
    }
    return {TaskLabel(schedule_, graph_, task), std::string(tensor),
            static_cast<std::int64_t>(task.index())};
  }

  void WriteFrames(const SnapshotFrame& frame) {
    pickle_.Add("frames");
    if (const auto known = frames_.find(frame); known != frames_.end()) {
      pickle_.Recall(known->second);
      return;
    }
    pickle_.BeginList();
    pickle_.BeginDict();
    Pair("filename", std::string_view(frame.filename));
    Pair("name", std::string_view(frame.name));
    Pair("line", frame.line);
    pickle_.EndDict();
    pickle_.Append();
    frames_.emplace(frame, pickle_.Remember());
  }

  void WriteEvent(const AllocatorEvent& event) {
    const AllocatorCall& call = event.call;
    const bool out_of_memory = call.action == AllocatorAction::kOutOfMemory;
    pickle_.BeginDict();
    Pair("action", ActionName(call.action));
    if (out_of_memory) {
      Pair("device_free", static_cast<std::int64_t>(call.address));
    } else {
      Pair("addr", AddressOf(call));
    }
    Pair("size", call.requested.count());
    Pair("stream", static_cast<std::int64_t>(call.stream.index()));
    Pair("time_us", event.time.ns() / 1000);
    if (OfSegment(call.action)) {
      FollowSegment(call);
    } else if (!out_of_memory) {
      WriteFrames(FollowBlock(event));
    }
    pickle_.EndDict();
  }

  /// The frame of the block that an event is about.
  SnapshotFrame FollowBlock(const AllocatorEvent& event) {
    const std::uint64_t address = event.call.address;
    if (event.call.action == AllocatorAction::kAlloc) {
      return blocks_
          .insert_or_assign(address, SnapshotBlock{event.call, FrameOf(event.buffer, event.task)})
          .first->second.frame;
    }
    SnapshotBlock& block = blocks_.at(address);
    block.freed = true;
    SnapshotFrame frame = block.frame;
    if (event.call.action == AllocatorAction::kFreeCompleted) {
      blocks_.erase(address);
    }
    return frame;
  }

  /// Mapped ranges that touch are one segment, as PyTorch shows them.
  void FollowSegment(const AllocatorCall& call) {
    const auto bytes = static_cast<std::uint64_t>(call.bytes.count());
    switch (call.action) {
      case AllocatorAction::kSegmentFree:
        segments_.erase(call.address);
        return;
      case AllocatorAction::kSegmentUnmap:
        Unmap(call.address, call.address + bytes);
        return;
      default:
        break;
    }
    auto here = segments_.emplace(call.address, call).first;
    if (call.action != AllocatorAction::kSegmentMap) {
      return;
    }
    const auto joins = [](const auto& low, const auto& high) {
      return EndOf(*low) == high->first && low->second.stream == high->second.stream &&
             low->second.is_small == high->second.is_small;
    };
    if (const auto next = std::next(here); next != segments_.end() && joins(here, next)) {
      here->second.bytes += next->second.bytes;
      segments_.erase(next);
    }
    if (here != segments_.begin() && joins(std::prev(here), here)) {
      std::prev(here)->second.bytes += here->second.bytes;
      segments_.erase(here);
    }
  }

  static std::uint64_t EndOf(const std::pair<const std::uint64_t, AllocatorCall>& segment) {
    return segment.first + static_cast<std::uint64_t>(segment.second.bytes.count());
  }

  /// Takes a range out of the segment that holds it.
  void Unmap(std::uint64_t begin, std::uint64_t end) {
    const auto holder = std::prev(segments_.upper_bound(begin));
    const std::uint64_t first = holder->first;
    const std::uint64_t last = EndOf(*holder);
    AllocatorCall part = holder->second;
    segments_.erase(holder);
    const auto keep = [&](std::uint64_t from, std::uint64_t to) {
      if (from < to) {
        part.address = from;
        part.bytes = Bytes(static_cast<std::int64_t>(to - from));
        segments_.emplace(from, part);
      }
    };
    keep(first, begin);
    keep(end, last);
  }

  void WriteSegment(std::uint64_t address, const AllocatorCall& segment) {
    const std::uint64_t end = address + static_cast<std::uint64_t>(segment.bytes.count());
    Bytes allocated;
    Bytes active;
    Bytes requested;
    pickle_.BeginDict();
    pickle_.Add("blocks");
    pickle_.BeginList();
    std::uint64_t from = address;
    for (auto block = blocks_.lower_bound(address); block != blocks_.end() && block->first < end;
         ++block) {
      const AllocatorCall& call = block->second.call;
      WriteFree(from, call.address);
      WriteBlock(call.address, call.bytes, call.requested, &block->second);
      active += call.bytes;
      allocated += block->second.freed ? Bytes() : call.bytes;
      requested += call.requested;
      from = call.address + static_cast<std::uint64_t>(call.bytes.count());
    }
    WriteFree(from, end);
    Pair("device", std::int64_t{0});
    Pair("address", static_cast<std::int64_t>(address & kAddressMask));
    Pair("total_size", segment.bytes.count());
    Pair("allocated_size", allocated.count());
    Pair("active_size", active.count());
    Pair("requested_size", requested.count());
    Pair("stream", static_cast<std::int64_t>(segment.stream.index()));
    Pair("segment_type", segment.is_small ? "small" : "large");
    Pair("is_expandable", expandable());
    pickle_.EndDict();
  }

  void WriteFree(std::uint64_t from, std::uint64_t to) {
    if (from < to) {
      WriteBlock(from, Bytes(static_cast<std::int64_t>(to - from)), Bytes(), nullptr);
    }
  }

  /// `used`: nothing for one that is free.
  void WriteBlock(std::uint64_t address, Bytes bytes, Bytes requested, const SnapshotBlock* used) {
    pickle_.BeginDict();
    Pair("address", static_cast<std::int64_t>(address & kAddressMask));
    Pair("size", bytes.count());
    Pair("requested_size", requested.count());
    if (used == nullptr) {
      Pair("state", "inactive");
      pickle_.Add("frames");
      pickle_.BeginList();
    } else {
      Pair("state", used->freed ? "active_pending_free" : "active_allocated");
      WriteFrames(used->frame);
    }
    pickle_.EndDict();
    pickle_.Append();
  }

  const Schedule& schedule_;
  const Graph& graph_;
  StepFacts facts_;
  Pickle pickle_;
  std::map<SnapshotFrame, std::size_t> frames_;      // their names in the pickle
  std::map<std::uint64_t, AllocatorCall> segments_;  // by address, as allocated so far
  std::map<std::uint64_t, SnapshotBlock> blocks_;    // by address, those in use
};

}  // namespace

std::string PrintMemorySnapshot(std::span<const AllocatorEvent> events,
                                const Schedule& schedule,
                                const Graph& graph) {
  return SnapshotWriter(schedule, graph).Write(events);
}

}  // namespace dcsim
