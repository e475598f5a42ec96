#include "tools/views/dag_page.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "model/base/text.h"
#include "sim/analysis/critical_path.h"
#include "tools/views/dag_page_merge.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

struct PageState {
  const Schedule& schedule;
  std::vector<std::optional<TaskPlace>> places;
  DagPage page;
  std::vector<std::size_t> column_of;  // by task; kNone: not drawn
  std::vector<std::size_t> box_of;     // by task
};

StreamRole LaneOf(const Schedule& schedule, std::size_t task) {
  return static_cast<StreamRole>(schedule.tasks()[task].stream);
}

PageBand BandOf(const TaskPlace& place) {
  return place.phase.starts_with("forward") ? PageBand::kForward : PageBand::kBackward;
}

bool IsOptimizer(const TaskPlace& place) {
  return place.phase.starts_with("optimizer");
}

/// "model.layers.3" -> "model.layers"; "3" -> "layers".
std::string ListOf(const std::string& layer) {
  const std::size_t dot = layer.rfind('.');
  return dot == std::string::npos ? "layers" : layer.substr(0, dot);
}

std::size_t AddColumn(PageState& state, PageBand band, const std::string& label) {
  const auto& columns = state.page.columns;
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const PageColumn& column) {
    return column.band == band && column.label == label;
  });
  if (found != columns.end()) {
    return static_cast<std::size_t>(found - columns.begin());
  }
  state.page.columns.push_back({band, label, 0, Duration()});
  return columns.size() - 1;
}

bool IsCompute(const std::optional<TaskPlace>& place) {
  return place && place->kind == DagNodeKind::kCompute;
}

/// The columns of compute, in issue order. Modules outside of layers have one before the first
/// layer and one behind the last; between layers they are drawn with the layer before.
void PlaceCompute(PageState& state, PageBand band) {
  std::vector<std::size_t> tasks;
  std::vector<std::size_t> layered;  // positions in tasks
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (IsCompute(state.places[i]) && BandOf(*state.places[i]) == band) {
      if (!state.places[i]->layer.empty()) {
        layered.push_back(tasks.size());
      }
      tasks.push_back(i);
    }
  }
  std::size_t column = kNone;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskPlace& place = *state.places[tasks[i]];
    if (!place.layer.empty()) {
      column = AddColumn(state, band, ListOf(place.layer));
    } else if (layered.empty()) {
      column = AddColumn(state, band, "all modules");
    } else if (i < layered.front()) {
      column = AddColumn(state, band, "before the layers");
    } else if (i > layered.back()) {
      column = AddColumn(state, band, "behind the layers");
    }
    state.column_of[tasks[i]] = column;
  }
}

/// The compute that waits for each task of another stream, by task; kNone where none does.
std::vector<std::size_t> FirstUsers(const PageState& state) {
  std::vector<std::size_t> users(state.places.size(), kNone);
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (state.schedule.tasks()[i].on_host()) {
      continue;
    }
    for (const TaskId waited : state.schedule.waits(TaskId(i))) {
      if (users[waited.index()] == kNone && state.places[waited.index()]) {
        const std::size_t next = NextPlaced(state.schedule, state.places, i);
        if (next < state.places.size() && IsCompute(state.places[next])) {
          users[waited.index()] = next;
        }
      }
    }
  }
  return users;
}

/// Gathers stand where they are used, other tasks in the column of their layer, else in that of the
/// compute before them.
void PlaceOthers(PageState& state) {
  const std::vector<std::size_t> users = FirstUsers(state);
  std::size_t before = kNone;
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (!state.places[i]) {
      continue;
    }
    const TaskPlace& place = *state.places[i];
    if (place.kind == DagNodeKind::kCompute) {
      before = state.column_of[i];
    } else if (IsOptimizer(place)) {
      state.column_of[i] = AddColumn(state, PageBand::kBackward, "optimizer");
    } else if (place.kind == DagNodeKind::kGather && users[i] != kNone) {
      state.column_of[i] = state.column_of[users[i]];
    } else if (!place.layer.empty()) {
      state.column_of[i] = AddColumn(state, BandOf(place), ListOf(place.layer));
    } else {
      state.column_of[i] =
          before != kNone ? before : AddColumn(state, BandOf(place), "before the layers");
    }
  }
}

/// By band; the optimizer comes last, as AddColumn met it last.
void SortColumns(PageState& state) {
  std::vector<std::size_t> order(state.page.columns.size());
  for (std::size_t c = 0; c < order.size(); ++c) {
    order[c] = c;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const PageColumn& left = state.page.columns[a];
    const PageColumn& right = state.page.columns[b];
    return std::tuple(left.band, left.label == "optimizer") <
           std::tuple(right.band, right.label == "optimizer");
  });
  std::vector<PageColumn> sorted;
  std::vector<std::size_t> renumbered(order.size());
  for (const std::size_t c : order) {
    renumbered[c] = sorted.size();
    sorted.push_back(state.page.columns[c]);
  }
  state.page.columns = std::move(sorted);
  for (std::size_t& column : state.column_of) {
    column = column == kNone ? kNone : renumbered[column];
  }
}

/// What a box of tasks is called, before those of one lane are merged.
std::string LabelOf(const PageState& state, std::size_t task) {
  const TaskPlace& place = *state.places[task];
  const TaskKind kind = state.schedule.tasks()[task].kind;
  switch (place.kind) {
    case DagNodeKind::kCompute:
      return place.layer.empty() ? place.label : place.label.substr(0, place.label.find('.'));
    case DagNodeKind::kOptimizer:
      return place.label;
    case DagNodeKind::kGather:
      return "all-gather";
    case DagNodeKind::kReduce:
      if (const Collective* collective = state.schedule.FindCollective(TaskId(task))) {
        return collective->kind == CollectiveKind::kAllReduce ? "all-reduce" : "reduce-scatter";
      }
      return IsOptimizer(place) ? place.label : "reduce buckets";
    default:
      return kind == TaskKind::kOffload || kind == TaskKind::kReload || kind == TaskKind::kCastShard
                 ? std::string(TaskKindName(kind))
                 : "gradient copies";
  }
}

/// Boxes of a lane that become one: all that are no compute.
std::string KeyOf(const PageState& state, std::size_t task) {
  const TaskPlace& place = *state.places[task];
  const bool apart = place.kind == DagNodeKind::kCompute || place.kind == DagNodeKind::kOptimizer;
  return apart ? LabelOf(state, task) : "";
}

/// Boxes, and which one each task is in.
void MakeBoxes(PageState& state) {
  std::map<std::tuple<std::size_t, StreamRole, DagNodeKind, std::string>, std::size_t> ids;
  state.box_of.assign(state.places.size(), kNone);
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (!state.places[i]) {
      continue;
    }
    PageBox made;
    made.kind = state.places[i]->kind;
    made.lane = LaneOf(state.schedule, i);
    made.column = state.column_of[i];
    made.label = LabelOf(state, i);
    const auto [entry, added] = ids.emplace(
        std::tuple(made.column, made.lane, made.kind, KeyOf(state, i)), state.page.boxes.size());
    if (added) {
      state.page.boxes.push_back(made);
    }
    state.box_of[i] = entry->second;
    PageBox& box = state.page.boxes[entry->second];
    ++box.tasks;
    if (const Collective* collective = state.schedule.FindCollective(TaskId(i))) {
      box.label = made.label;  // more than what is done around it
      box.payload += collective->payload();
    }
  }
}

/// How many layers a column has, and in how many of them each of its boxes has tasks; what belongs
/// to no layer, such as a bucket, to all of them.
void CountLayers(PageState& state) {
  std::vector<std::set<std::string>> of_column(state.page.columns.size());
  std::vector<std::set<std::string>> of_box(state.page.boxes.size());
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (IsCompute(state.places[i]) && !state.places[i]->layer.empty()) {
      of_column[state.column_of[i]].insert(state.places[i]->layer);
      of_box[state.box_of[i]].insert(state.places[i]->layer);
    }
  }
  for (std::size_t c = 0; c < of_column.size(); ++c) {
    state.page.columns[c].layers = of_column[c].size();
  }
  for (std::size_t b = 0; b < of_box.size(); ++b) {
    PageBox& box = state.page.boxes[b];
    const std::size_t all = state.page.columns[box.column].layers;
    box.layers = std::max<std::size_t>(1, of_box[b].empty() ? all : of_box[b].size());
  }
}

void AddTimes(PageState& state, const Timeline& timeline) {
  for (const Span& span : timeline.spans) {
    const std::size_t box = state.box_of[span.task.index()];
    if (box != kNone) {
      state.page.boxes[box].busy += span.end - span.start;
    }
  }
  for (const PageBox& box : state.page.boxes) {
    if (box.lane == StreamRole::kCompute) {
      state.page.columns[box.column].compute += box.busy;
    }
  }
}

/// "compute 92.1 %, gather 1.0 %, host 2.3 %" of the step time.
std::string SharesText(const std::array<Duration, kStreamCount>& by_lane,
                       Duration host,
                       Duration step) {
  std::vector<std::string> parts;
  constexpr double kShown = 0.0005;  // 0.1 %, rounded
  const auto add = [&](std::string_view name, Duration time) {
    const double share = static_cast<double>(time.ns()) / static_cast<double>(step.ns());
    if (share >= kShown) {
      parts.push_back(std::string(name) + " " + Percent(share));
    }
  };
  for (std::size_t lane = 0; lane < kStreamCount; ++lane) {
    add(StreamRoleName(static_cast<StreamRole>(lane)), by_lane[lane]);
  }
  add("host", host);
  return Join(parts, ", ");
}

/// How often one box leads to another.
using Counts = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;

/// Times of the critical path, and how often it goes from one box to another.
Counts AddCriticalPath(PageState& state, const Timeline& timeline) {
  Counts steps;
  if (timeline.stop || timeline.step_time == Duration()) {
    return steps;
  }
  std::array<Duration, kStreamCount> by_lane{};
  Duration host;
  std::size_t before = kNone;
  for (const CriticalPiece& piece : FindStepCriticalPath(timeline, state.schedule)) {
    const Duration length = piece.end - piece.start;
    if (piece.on_host) {
      host += length;
      continue;
    }
    by_lane[state.schedule.task(piece.task).stream] += length;
    const std::size_t box = state.box_of[piece.task.index()];
    if (box == kNone) {
      continue;
    }
    state.page.boxes[box].critical += length;
    if (before != kNone && before != box) {
      ++steps[{before, box}];
    }
    before = box;
  }
  state.page.critical = SharesText(by_lane, host, timeline.step_time);
  return steps;
}

/// How many tasks of one box wait for tasks of another, on another stream. A gather waits for the
/// point of its issue, which says little.
Counts CountWaits(const PageState& state) {
  Counts waits;
  for (std::size_t i = 0; i < state.places.size(); ++i) {
    if (state.schedule.tasks()[i].on_host()) {
      continue;
    }
    const std::size_t next = NextPlaced(state.schedule, state.places, i);
    const std::size_t to = next < state.places.size() ? state.box_of[next] : kNone;
    for (const TaskId waited : state.schedule.waits(TaskId(i))) {
      const std::size_t from = state.box_of[waited.index()];
      if (from != kNone && to != kNone &&
          state.page.boxes[from].lane != state.page.boxes[to].lane &&
          state.page.boxes[to].kind != DagNodeKind::kGather) {
        ++waits[{from, to}];
      }
    }
  }
  return waits;
}

/// Of the arrows between two streams those that are the most frequent for the box at either end,
/// and of two opposite ones the more frequent; all of one stream.
std::vector<std::pair<std::size_t, std::size_t>> MostFrequent(const DagPage& page,
                                                              const Counts& counts) {
  std::map<std::pair<std::size_t, StreamRole>, std::size_t> out;
  std::map<std::pair<std::size_t, StreamRole>, std::size_t> in;
  for (const auto& [ends, count] : counts) {
    std::size_t& most_out = out[{ends.first, page.boxes[ends.second].lane}];
    std::size_t& most_in = in[{ends.second, page.boxes[ends.first].lane}];
    most_out = std::max(most_out, count);
    most_in = std::max(most_in, count);
  }
  std::vector<std::pair<std::size_t, std::size_t>> kept;
  for (const auto& [ends, count] : counts) {
    const StreamRole from = page.boxes[ends.first].lane;
    const StreamRole to = page.boxes[ends.second].lane;
    const auto back = counts.find({ends.second, ends.first});
    const bool fewer = back != counts.end() &&
                       (back->second > count || (back->second == count && back->first < ends));
    if (from == to ||
        (count == out[{ends.first, to}] && count == in[{ends.second, from}] && !fewer)) {
      kept.push_back(ends);
    }
  }
  return kept;
}

void AddArrows(PageState& state, const Counts& critical) {
  std::map<std::pair<std::size_t, std::size_t>, bool> arrows;
  for (const auto& ends : MostFrequent(state.page, CountWaits(state))) {
    arrows[ends] = false;
  }
  for (const auto& ends : MostFrequent(state.page, critical)) {
    arrows[ends] = true;
    arrows.erase({ends.second, ends.first});
  }
  for (const auto& [ends, is_critical] : arrows) {
    state.page.arrows.push_back({ends.first, ends.second, is_critical});
  }
}

}  // namespace

DagPage FoldPage(const Schedule& schedule, const Graph& graph, const Timeline& timeline) {
  PageState state{schedule, PlaceTasks(schedule, graph, timeline.stop), {}, {}, {}};
  state.page.title = DagTitle(schedule, graph, timeline);
  state.column_of.assign(state.places.size(), kNone);
  PlaceCompute(state, PageBand::kForward);
  PlaceCompute(state, PageBand::kBackward);
  PlaceOthers(state);
  SortColumns(state);
  MakeBoxes(state);
  CountLayers(state);
  AddTimes(state, timeline);
  AddArrows(state, AddCriticalPath(state, timeline));
  return MergeSmallBoxes(std::move(state.page));
}

}  // namespace dcsim
