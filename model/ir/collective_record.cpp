#include "model/ir/collective_record.h"

#include <algorithm>
#include <array>
#include <functional>

#include "model/base/text.h"

namespace dcsim {
namespace {

/// By stream: one past the last collective of the list that has certainly ended.
using Ended = std::array<std::size_t, kStreamCount>;

void Join(Ended& ended, const Ended& other) {
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    ended[s] = std::max(ended[s], other[s]);
  }
}

/// Follows a step's tasks in issue order.
class Follower {
 public:
  explicit Follower(const Schedule& schedule)
      : schedule_(schedule),
        starts_(schedule.task_count()),
        numbers_(schedule.task_count()) {}

  /// What has ended when the task starts.
  const Ended& Start(TaskId id) {
    const Task& task = schedule_.task(id);
    Ended& ended = starts_[id.index()];
    ended = host_;
    for (const TaskId waited : schedule_.waits(id)) {
      JoinEnd(ended, waited);
    }
    if (task.on_host()) {
      host_ = ended;
      return ended;
    }
    if (!last_[task.stream].is_none()) {
      JoinEnd(ended, last_[task.stream]);
    }
    last_[task.stream] = id;
    numbers_[id.index()] = schedule_.FindCollective(id) == nullptr ? 0 : ++count_;
    return ended;
  }

 private:
  void JoinEnd(Ended& ended, TaskId id) {
    Join(ended, starts_[id.index()]);
    std::size_t& own = ended[schedule_.task(id).stream];
    own = std::max(own, numbers_[id.index()]);
  }

  const Schedule& schedule_;
  std::vector<Ended> starts_;         // by task
  std::vector<std::size_t> numbers_;  // by task: of a collective, counted from 1
  std::array<TaskId, kStreamCount> last_;
  Ended host_{};
  std::size_t count_ = 0;
};

Json PrintCalls(const Collective& collective, const Graph& graph) {
  Json calls = Json::array();
  for (const CollectiveCall& call : collective.calls) {
    const Json param = call.param.is_none() ? Json(nullptr) : Json(graph.param(call.param).name);
    calls.push_back({param, call.elements, call.offset});
  }
  return calls;
}

Json PrintAfter(const Ended& ended) {
  std::vector<std::size_t> after;
  for (const std::size_t number : ended) {
    if (number > 0) {
      after.push_back(number - 1);
    }
  }
  std::sort(after.begin(), after.end(), std::greater<>());
  return after;
}

}  // namespace

Json PrintCollectives(const Schedule& schedule, const Graph& graph) {
  Json list = Json::array();
  Follower follower(schedule);
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskId id(i);
    const Ended& ended = follower.Start(id);
    const Collective* collective = schedule.FindCollective(id);
    if (collective == nullptr) {
      continue;
    }
    const Task& task = schedule.task(id);
    list.push_back({{"kind", CollectiveKindName(collective->kind)},
                    {"engine", EngineNames()[static_cast<std::size_t>(collective->engine)]},
                    {"dtype", DTypeName(collective->dtype)},
                    {"stream", StreamRoleName(static_cast<StreamRole>(task.stream))},
                    {"communicator", collective->communicator},
                    {"micro_step", task.micro_step},
                    {"one_launch", collective->one_launch},
                    {"calls", PrintCalls(*collective, graph)},
                    {"payload_bytes", collective->payload().count()},
                    {"wire_bytes", collective->wire().count()},
                    {"after", PrintAfter(ended)}});
  }
  return list;
}

Json PrintCollectiveRecord(const Schedule& schedule, const Json& plan, const Graph& graph) {
  return {{"format", "dc-collectives/1"},
          {"workload", {{"name", graph.name}, {"graph", HexDigits(graph.hash)}}},
          {"ranks", schedule.ranks()},
          {"collectives", PrintCollectives(schedule, graph)},
          {"plan", plan}};
}

}  // namespace dcsim
