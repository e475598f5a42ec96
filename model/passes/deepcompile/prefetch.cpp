#include "model/passes/deepcompile/prefetch.h"

#include <algorithm>
#include <deque>

namespace dcsim {
namespace {

// passes/prefetch.py
constexpr double kPrefetchMargin = 0.1;
constexpr double kFuseFactor = 1.2;
constexpr double kMostFused = 1e9;     // bytes
constexpr double kMostBuffered = 4e9;  // bytes

using Group = std::vector<std::uint32_t>;

/// The walk from the end: `reversed` is the new order, last step first.
class PrefetchWalk {
 public:
  PrefetchWalk(const PassGraph& graph, const PrefetchInputs& inputs)
      : graph_(graph),
        inputs_(inputs),
        limit_(static_cast<float>(static_cast<double>(inputs.device_memory.count()) *
                                  (1 - kPrefetchMargin))) {}

  /// One node; `peak` is that of the node before it.
  void Visit(std::uint32_t node, Bytes peak, bool first_behind_inputs) {
    MakeRoom(static_cast<double>(peak.count()));
    if (graph_.nodes[node].kind == PassNodeKind::kGather) {
      Hold(node);
    } else {
      reversed_.push_back({node, {}});
    }
    if (first_behind_inputs) {
      IssueAll();
    }
  }

  void VisitInput(std::uint32_t node) { reversed_.push_back({node, {}}); }

  std::vector<PassStep> Finish() {
    std::reverse(reversed_.begin(), reversed_.end());
    return std::move(reversed_);
  }

 private:
  std::int64_t BytesOf(const Group& group) const {
    std::int64_t bytes = 0;
    for (const std::uint32_t gather : group) {
      bytes += graph_.nodes[gather].tensor_bytes.count();
    }
    return bytes;
  }

  void MakeRoom(double peak) {
    const auto full = [&] {
      const auto held = static_cast<double>(held_bytes_);
      return peak + held > limit_ || held > kMostBuffered;
    };
    while (full()) {
      if (!closed_.empty()) {
        Issue(closed_.front());
        closed_.pop_front();
      } else if (!open_.empty()) {
        closed_.push_back(std::move(open_));
        open_.clear();
      } else {
        return;
      }
    }
  }

  void Hold(std::uint32_t gather) {
    const std::int64_t bytes = graph_.nodes[gather].tensor_bytes.count();
    const std::int64_t before = BytesOf(open_);
    const double apart = std::max(inputs_.gather_seconds(before), inputs_.gather_seconds(bytes));
    const bool joins = apart * kFuseFactor > inputs_.gather_seconds(before + bytes) &&
                       static_cast<double>(before + bytes) < kMostFused;
    if (!open_.empty() && !joins) {
      closed_.push_back(std::move(open_));
      open_.clear();
    }
    open_.push_back(gather);
    held_bytes_ += bytes;
  }

  void Issue(const Group& group) {
    held_bytes_ -= BytesOf(group);
    reversed_.push_back({0, group});
  }

  void IssueAll() {
    for (const Group& group : closed_) {
      Issue(group);
    }
    if (!open_.empty()) {
      Issue(open_);
    }
    closed_.clear();
    open_.clear();
  }

  const PassGraph& graph_;
  const PrefetchInputs& inputs_;
  double limit_;  // rounded to float32, in which ranks agree on it
  std::vector<PassStep> reversed_;
  Group open_;                // still joined with what comes next
  std::deque<Group> closed_;  // first in, first issued
  std::int64_t held_bytes_ = 0;
};

}  // namespace

std::vector<PassStep> PrefetchGathers(const PassGraph& graph,
                                      const std::vector<std::uint32_t>& order,
                                      const PrefetchInputs& inputs) {
  PrefetchWalk walk(graph, inputs);
  const auto is_input = [&](std::size_t place) {
    return graph.nodes[order[place]].kind == PassNodeKind::kPlaceholder;
  };
  for (std::size_t i = order.size(); i-- > 0;) {
    if (is_input(i)) {
      walk.VisitInput(order[i]);
    } else {
      const bool has_before = i > 0;
      walk.Visit(order[i], has_before ? inputs.peaks[i - 1] : Bytes(0),
                 !has_before || is_input(i - 1));
    }
  }
  return walk.Finish();
}

GatherPredictor::GatherPredictor(std::vector<Point> points) : points_(std::move(points)) {
  points_.insert(points_.begin(), Point());
}

double GatherPredictor::operator()(std::int64_t bytes) const {
  const auto at = static_cast<double>(bytes);
  if (bytes == 0 || points_.size() < 2) {
    return 0;
  }
  std::size_t above = 1;
  while (above + 1 < points_.size() && points_[above].bytes < at) {
    ++above;
  }
  const Point& low = points_[above - 1];
  const Point& high = points_[above];
  return low.seconds + (high.seconds - low.seconds) * (at - low.bytes) / (high.bytes - low.bytes);
}

GatherPredictor PredictorOf(const std::vector<GatherTime>& gather_times) {
  std::vector<GatherPredictor::Point> points;
  points.reserve(gather_times.size());
  for (const auto& [bytes, time] : gather_times) {
    points.push_back({static_cast<double>(bytes.count()), time.seconds()});
  }
  return GatherPredictor(std::move(points));
}

}  // namespace dcsim
