#include "model/ir/schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "model/base/error.h"

namespace dcsim {
namespace {

constexpr std::array<std::string_view, 35> kTaskKindNames = {"compute",
                                                             "all-gather",
                                                             "wait",
                                                             "release",
                                                             "accumulate",
                                                             "make-contiguous",
                                                             "reduce-grad-copy",
                                                             "pre-divide",
                                                             "reduce",
                                                             "store-reduced",
                                                             "host-synchronize",
                                                             "end-backward",
                                                             "allocate",
                                                             "set-tangents",
                                                             "clear-gradients",
                                                             "free",
                                                             "gradient-norm",
                                                             "reduce-norm",
                                                             "cast-gradients",
                                                             "clip-gradients",
                                                             "optimizer-step",
                                                             "store-params",
                                                             "gather-updated",
                                                             "barrier",
                                                             "flatten",
                                                             "unflatten",
                                                             "offload",
                                                             "reload",
                                                             "cast-shard",
                                                             "copy-inputs",
                                                             "cast-bucket",
                                                             "host-calls",
                                                             "gather-copy-in",
                                                             "gather-copy-out",
                                                             "reduce-copy-in"};

constexpr std::array<std::string_view, kStreamCount> kStreamNames = {
    "compute", "gather", "reduce", "copy", "offload", "reload"};
constexpr std::array<std::string_view, 3> kCollectiveNames = {"all_gather", "reduce_scatter",
                                                              "all_reduce"};

constexpr std::array<std::string_view, 14> kBufferClassNames = {
    "parameters",         "gathered parameters", "master weights", "optimizer states",  "gradients",
    "gradient partition", "reduce buckets",      "activations",    "held outputs",      "inputs",
    "constants",          "temporaries",         "workspaces",     "pinned host memory"};

constexpr std::array<std::string_view, 16> kPatternNames = {
    "copy",   "scale",        "clip",         "add",
    "widen",  "narrow",       "fill",         "norm",
    "adamw",  "adamw_uneven", "passes",       "offload",
    "reload", "inputs",       "fused_update", "fused_update_uneven"};

/// Mixes one more field into a hash (Boost's hash_combine with a 64-bit constant).
std::size_t Combine(std::size_t seed, std::size_t field) {
  return seed ^ (field + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

}  // namespace

std::span<const std::string_view> MemoryPatternNames() {
  return kPatternNames;
}
std::string_view MemoryPatternName(MemoryPattern pattern) {
  return kPatternNames[static_cast<std::size_t>(pattern)];
}
std::span<const std::string_view> TaskKindNames() {
  return kTaskKindNames;
}
std::string_view TaskKindName(TaskKind kind) {
  return kTaskKindNames[static_cast<std::size_t>(kind)];
}
std::string_view StreamRoleName(StreamRole role) {
  return kStreamNames[static_cast<std::size_t>(role)];
}
std::span<const std::string_view> CollectiveKindNames() {
  return kCollectiveNames;
}
std::string_view CollectiveKindName(CollectiveKind kind) {
  return kCollectiveNames[static_cast<std::size_t>(kind)];
}
std::span<const std::string_view> BufferClassNames() {
  return kBufferClassNames;
}
std::string_view BufferClassName(BufferClass buffer_class) {
  return kBufferClassNames[static_cast<std::size_t>(buffer_class)];
}

Bytes Collective::payload() const {
  std::int64_t elements = 0;
  for (const CollectiveCall& call : calls) {
    elements += call.elements;
  }
  return Bytes(elements * ElementBytes(dtype));
}

Bytes Collective::wire() const {
  const std::int64_t passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const std::int64_t sent = payload().count() * passes * (ranks - 1);
  return Bytes(DivideUp(sent, ranks));
}

std::size_t WorkHash::operator()(const Work& work) const {
  std::size_t hash = static_cast<std::size_t>(work.kind);
  hash = Combine(hash, static_cast<std::size_t>(work.pattern));
  hash = Combine(hash, work.launches);
  hash = Combine(hash, work.events);
  hash = Combine(hash, work.subject);
  hash = Combine(hash, static_cast<std::size_t>(work.moved.count()));
  hash = Combine(hash, static_cast<std::size_t>(work.offset));
  hash = Combine(hash, work.concatenates ? 1 : 0);
  hash = Combine(hash, work.python.operators);
  hash = Combine(hash, work.python.autograd_nodes);
  hash = Combine(hash, work.python.modules);
  return Combine(hash, work.python.graphs);
}

std::size_t CollectiveHash::operator()(const Collective& collective) const {
  std::size_t hash = static_cast<std::size_t>(collective.kind);
  hash = Combine(hash, static_cast<std::size_t>(collective.dtype));
  for (const CollectiveCall& call : collective.calls) {
    hash = Combine(hash, call.param.index());
    hash = Combine(hash, static_cast<std::size_t>(call.offset));
  }
  return hash;
}

const Collective* Schedule::FindCollective(TaskId id) const {
  const Work& asked = work(task(id).work);
  return asked.kind == Work::Kind::kCollective ? &collectives_[asked.subject] : nullptr;
}

Bytes Schedule::host_pinned() const {
  const auto allocated = [](std::int64_t bytes) {
    return Bytes(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))));
  };
  Bytes total;
  std::map<std::uint8_t, std::int64_t> tensors;  // by pool: of buffers in one tensor
  for (const Buffer& buffer : buffers_) {
    if (buffer.on_host() && buffer.pool != 0) {
      tensors[buffer.pool] += buffer.bytes.count();
    } else if (buffer.on_host()) {
      total += allocated(buffer.bytes.count());
    }
  }
  for (const auto& [pool, bytes] : tensors) {
    total += allocated(bytes);
  }
  return total;
}

double Schedule::bytes_per_task() const {
  const double bytes =
      static_cast<double>(tasks_.size() * sizeof(Task) + works_.size() * sizeof(Work) +
                          buffers_.size() * sizeof(Buffer)) +
      waits_.bytes() + memory_.bytes() + uses_.bytes() +
      static_cast<double>(rank_works_.size() * sizeof(RankWork));
  return bytes / static_cast<double>(tasks_.size());
}

int Schedule::ranks_told() const {
  return rank_works_.empty() ? 1 : std::min(ranks_, kRanksTold);
}

Schedule Schedule::Repeating(const Repetition& repetition) && {
  repetition_ = repetition;
  return std::move(*this);
}

ScheduleBuilder::ScheduleBuilder(int ranks, const ScheduleOptions& options)
    : last_(kStreamCount, TaskId::None()) {
  schedule_.ranks_ = ranks;
  schedule_.options_ = options;
}

BufferId ScheduleBuilder::AddBuffer(const Buffer& buffer) {
  DCSIM_CHECK(buffer.bytes > Bytes(0)) << "a buffer has bytes";
  const BufferId id(schedule_.buffers_.size());
  schedule_.buffers_.push_back(buffer);
  if (buffer.resident && !buffer.on_host()) {
    schedule_.residents_.push_back(id);
  }
  return id;
}

CollectiveId ScheduleBuilder::AddCollective(const Collective& collective) {
  const CollectiveId next(schedule_.collectives_.size());
  const auto [entry, added] = collective_ids_.emplace(collective, next);
  if (added) {
    schedule_.collectives_.push_back(collective);
  }
  return entry->second;
}

WorkId ScheduleBuilder::AddWork(const Work& work) {
  const auto [entry, added] = work_ids_.emplace(work, WorkId(schedule_.works_.size()));
  if (added) {
    schedule_.works_.push_back(work);
  }
  return entry->second;
}

TaskId ScheduleBuilder::Add(const TaskDraft& draft) {
  const auto append = [](auto& rows, const auto& items) {
    rows.items.insert(rows.items.end(), items.begin(), items.end());
    DCSIM_CHECK(rows.items.size() < std::numeric_limits<std::uint32_t>::max());
    rows.ends.push_back(static_cast<std::uint32_t>(rows.items.size()));
  };
  const TaskId id(schedule_.tasks_.size());
  DCSIM_CHECK(draft.stream || draft.uses.empty()) << "the host uses no buffers";
  for (const TaskId waited : draft.waits) {
    DCSIM_CHECK(waited >= id || !schedule_.task(waited).on_host())
        << "events are recorded on streams";
  }
  Task task;
  task.kind = draft.kind;
  task.micro_step = draft.micro_step;
  task.work = AddWork(draft.work);
  if (draft.stream) {
    const auto role = static_cast<std::size_t>(*draft.stream);
    task.stream = static_cast<std::uint8_t>(role);
    if (draft.kind != TaskKind::kCopyInputs) {
      last_[role] = id;
    }
  }
  schedule_.tasks_.push_back(task);
  append(schedule_.waits_, draft.waits);
  append(schedule_.memory_, draft.memory);
  append(schedule_.uses_, draft.uses);
  for (std::size_t i = 0; i < draft.others.size(); ++i) {
    if (draft.others[i] != draft.work) {
      schedule_.rank_works_.push_back({id, static_cast<int>(i) + 1, AddWork(draft.others[i])});
    }
  }
  return id;
}

Schedule ScheduleBuilder::Build() && {
  return std::move(schedule_);
}

}  // namespace dcsim
