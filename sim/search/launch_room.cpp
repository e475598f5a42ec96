#include <algorithm>
#include <array>
#include <limits>

#include "sim/search/folded_plan.h"

namespace dcsim {
namespace {

/// By compute task: the first task such that those from it on, the task itself included, fit into
/// the queue; a task that is alone always does.
std::vector<std::uint32_t> FindEnded(const std::vector<std::int32_t>& launches,
                                     std::int64_t queue) {
  std::vector<std::uint32_t> ended;
  std::int64_t queued = 0;
  std::uint32_t first = 0;
  for (std::uint32_t k = 0; k < launches.size(); ++k) {
    queued += launches[k];
    for (; queued > queue && first < k; ++first) {
      queued -= launches[first];
    }
    ended.push_back(first);
  }
  return ended;
}

/// Compares host and GPU between the end of the compute task that made room and everything that the
/// host issues up to where it might wait for room again. What the host waits for at its syncs ends
/// when it ends, so a host that comes there later goes on as late as otherwise, or with the slack.
class SlackFinder {
 public:
  SlackFinder(const FoldedProgram& program, const std::vector<std::uint32_t>& ended)
      : program_(program),
        ended_(ended),
        slack_(ended.size() + 1, std::numeric_limits<std::int64_t>::max()) {
    busy_.push_back(0);
    for (const FoldedTask& task : program.compute) {
      busy_.push_back(busy_.back() + task.gpu.device);
    }
  }

  std::vector<std::int64_t> Find() {
    for (std::uint32_t k = 1; k < program_.compute.size(); ++k) {
      Compare(k, program_.compute[k].issue, k);
    }
    AddStream(Counter::kCopy, program_.copy);
    AddStream(Counter::kReduce, program_.reduce);
    AddStream(Counter::kGather, program_.gather);
    const auto all = static_cast<std::uint32_t>(ended_.size());
    Compare(all, program_.host, all);
    return std::move(slack_);
  }

 private:
  /// What the host issues at `host`, behind `issued` compute tasks, is early enough if the GPU has
  /// work from the end of the task that made room until compute task `needs - 1` has ended.
  void Compare(std::uint32_t issued, std::int64_t host, std::uint32_t needs) {
    const std::uint32_t ended = issued == 0 ? 0 : ended_[issued - 1];
    if (ended > 0) {
      const std::int64_t gpu = busy_[needs] - busy_[ended];
      slack_[issued] = std::min(slack_[issued], gpu - (host - program_.compute[ended - 1].issue));
    }
  }

  /// Compute tasks issued before a key.
  std::uint32_t IssuedBefore(std::uint64_t key) const {
    const auto& compute = program_.compute;
    const auto next =
        std::lower_bound(compute.begin(), compute.end(), key,
                         [](const FoldedTask& task, std::uint64_t k) { return task.key < k; });
    return static_cast<std::uint32_t>(next - compute.begin());
  }

  /// Compute tasks that have ended when the needed tasks of other streams have.
  std::uint32_t ComputeBehind(const Counts& needs) const {
    std::uint32_t behind = needs[At(Counter::kCompute)];
    for (const Counter counter : {Counter::kCopy, Counter::kReduce, Counter::kGather}) {
      const std::uint32_t count = needs[At(counter)];
      if (count > 0 && count <= behind_[At(counter)].size()) {
        behind = std::max(behind, behind_[At(counter)][count - 1]);
      }
    }
    return behind;
  }

  void AddStream(Counter counter, const std::vector<FoldedTask>& tasks) {
    auto& all = behind_[At(counter)];
    for (const FoldedTask& task : tasks) {
      const std::uint32_t own = ComputeBehind(task.needs);
      all.push_back(all.empty() ? own : std::max(own, all.back()));
      if (task.gpu.device > 0) {  // others have no end that anything could wait for longer
        Compare(IssuedBefore(task.key), task.issue, all.back());
      }
    }
  }

  const FoldedProgram& program_;
  const std::vector<std::uint32_t>& ended_;
  std::vector<std::int64_t> busy_;  // of the first compute tasks, alone on the GPU
  std::array<std::vector<std::uint32_t>, kCounters> behind_;  // by task of a stream
  std::vector<std::int64_t> slack_;
};

}  // namespace

LaunchRoom FindLaunchRoom(const FoldedProgram& program,
                          const std::vector<std::int32_t>& launches,
                          std::int64_t queue) {
  LaunchRoom room;
  if (queue > 0 && !launches.empty()) {
    room.ended = FindEnded(launches, queue);
    room.slack = SlackFinder(program, room.ended).Find();
    room.least_slack = *std::min_element(room.slack.begin(), room.slack.end());
  }
  return room;
}

bool StaysAhead(const LaunchRoom& room, const FoldedPlan& plan) {
  if (plan.shifts.empty() || plan.shifts.back().host <= room.least_slack) {
    return true;
  }
  const auto& shifts = plan.shifts;
  std::size_t next = 0;   // shift behind compute task k
  std::size_t ended = 0;  // shift behind the task that made room
  std::int64_t host = 0;
  std::int64_t host_then = 0;
  for (std::size_t k = 1; k < room.slack.size(); ++k) {
    for (; next < shifts.size() && shifts[next].compute <= k; ++next) {
      host = shifts[next].host;
    }
    for (; ended < next && shifts[ended].compute < room.ended[k - 1]; ++ended) {
      host_then = shifts[ended].host;
    }
    if (host - host_then > room.slack[k]) {
      return false;
    }
  }
  return true;
}

}  // namespace dcsim
