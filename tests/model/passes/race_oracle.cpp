#include "tests/model/passes/race_oracle.h"

#include <array>
#include <map>

namespace dcsim {
namespace {

constexpr std::size_t kSteps = 2;

/// Edges "ends before the start of" between the tasks of two successive steps.
EdgeList EndsBefore(const Schedule& schedule) {
  constexpr std::uint32_t kNobody = UINT32_MAX;
  const std::size_t count = schedule.task_count();
  EdgeList graph{kSteps * count, {}};
  std::array<std::uint32_t, kStreamCount> last;
  last.fill(kNobody);
  std::uint32_t host = kNobody;
  for (std::size_t node = 0; node < kSteps * count; ++node) {
    const TaskId id(node % count);
    const auto self = static_cast<std::uint32_t>(node);
    for (const TaskId waited : schedule.waits(id)) {
      graph.edges.emplace_back(self - id.index() + waited.index(), self);
    }
    if (host != kNobody) {
      graph.edges.emplace_back(host, self);  // issued by the host behind what it did before
    }
    if (schedule.task(id).on_host()) {
      host = self;
      continue;
    }
    std::uint32_t& before = last[schedule.task(id).stream];
    if (before != kNobody) {
      graph.edges.emplace_back(before, self);
    }
    before = self;
  }
  return graph;
}

}  // namespace

RaceOracle::RaceOracle(const Schedule& schedule) : schedule_(schedule) {
  const EdgeList graph = EndsBefore(schedule);
  for (std::uint32_t node = 0; node < graph.node_count; ++node) {
    reach_.push_back(Reachable(graph, std::vector<std::uint32_t>{node}));
  }
}

std::vector<RaceOracle::Life> RaceOracle::Lives() const {
  const std::size_t count = schedule_.task_count();
  std::map<std::pair<std::size_t, std::size_t>, Life> lives;  // by step, or frees so far; buffer
  std::map<std::size_t, std::size_t> frees;                   // by resident
  const auto life = [&](std::size_t step, BufferId id) -> Life& {
    const Buffer& buffer = schedule_.buffer(id);
    const std::size_t key = buffer.resident ? frees[id.index()] : step;
    Life& found = lives[{key, id.index()}];
    found.buffer = id;
    found.before_steps = buffer.resident && key == 0;
    return found;
  };
  for (std::size_t node = 0; node < kSteps * count; ++node) {
    const std::size_t step = node / count;
    const TaskId id(node % count);
    for (const BufferUse& use : schedule_.uses(id)) {
      life(step, use.buffer).uses.emplace_back(node, use.writes);
    }
    for (const MemoryStep& call : schedule_.memory(id)) {
      const bool carried = schedule_.buffer(call.buffer).carried;
      if (!call.frees) {
        life(step, call.buffer).allocated = node;
      } else if (!carried || step > 0) {
        life(carried ? step - 1 : step, call.buffer).freed = node;
        frees[call.buffer.index()] += 1;
      }
    }
  }
  std::vector<Life> all;
  all.reserve(lives.size());
  for (auto& [key, value] : lives) {
    all.push_back(std::move(value));
  }
  return all;
}

void RaceOracle::CheckLife(const Life& life, std::vector<std::string>& races) const {
  const std::string name = "buffer " + std::to_string(life.buffer.index());
  bool written = life.before_steps && schedule_.buffer(life.buffer).starts_filled();
  for (std::size_t i = 0; i < life.uses.size(); ++i) {
    const auto [node, writes] = life.uses[i];
    if (!written && !writes) {
      races.push_back(name + " is read before any write");
    }
    written = written || writes;
    const bool begun = life.before_steps || (life.allocated != kNever && life.allocated <= node);
    if (!begun || life.freed < node) {
      races.push_back(name + " is used outside its life");
    }
    for (std::size_t k = 0; k < i; ++k) {
      const auto [earlier, wrote] = life.uses[k];
      if ((wrote || writes) && !Before(earlier, node)) {
        races.push_back(name + ": " + std::to_string(earlier) + " and " + std::to_string(node));
      }
    }
  }
}

void RaceOracle::CheckReuse(const Life& before,
                            const Life& after,
                            std::vector<std::string>& races) const {
  const Buffer& freed = schedule_.buffer(before.buffer);
  const bool may_share = before.freed != kNever && after.allocated != kNever &&
                         before.freed < after.allocated && !after.uses.empty() &&
                         freed.pool == schedule_.buffer(after.buffer).pool;
  for (std::size_t i = 0; may_share && i < before.uses.size(); ++i) {
    const std::size_t use = before.uses[i].first;
    const std::uint8_t stream = schedule_.task(TaskId(use % schedule_.task_count())).stream;
    const bool deferred = (freed.recorded_streams >> stream & 1U) != 0;
    if (!deferred && !Before(use, after.uses.front().first)) {
      races.push_back("buffer " + std::to_string(after.buffer.index()) +
                      " may lie in that of buffer " + std::to_string(before.buffer.index()));
    }
  }
}

std::vector<std::string> RaceOracle::FindRaces() const {
  std::vector<std::string> races;
  const auto lives = Lives();
  for (const Life& life : lives) {
    CheckLife(life, races);
    for (const Life& other : lives) {
      CheckReuse(life, other, races);
    }
  }
  return races;
}

}  // namespace dcsim
