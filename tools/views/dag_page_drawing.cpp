#include "tools/views/dag_page_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "model/base/text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

// Points, of which an inch has 72.
constexpr double kBoxWidth = 104;
constexpr double kBoxHeight = 40;
constexpr double kGapX = 14;
constexpr double kLaneHeight = 58;
constexpr double kColumnGap = 12;
constexpr double kLaneName = 64;  // left of the boxes
constexpr double kHeader = 34;    // above the lanes of a half
constexpr double kBandGap = 18;
constexpr double kTitle = 52;
constexpr std::size_t kLongestLabel = 21;  // characters in a box

/// Lanes from above: what feeds compute, compute, and what compute feeds.
constexpr std::array<StreamRole, kStreamCount> kLanes = {
    StreamRole::kReload, StreamRole::kGather, StreamRole::kCompute,
    StreamRole::kCopy,   StreamRole::kReduce, StreamRole::kOffload};

/// Part of its time from which a box counts as critical.
constexpr double kCriticalShare = 0.05;

double CriticalShare(const PageBox& box) {
  return box.busy > Duration()
             ? static_cast<double>(box.critical.ns()) / static_cast<double>(box.busy.ns())
             : 0;
}

bool IsCritical(const PageBox& box) {
  return CriticalShare(box) >= kCriticalShare;
}

std::string Decimals(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

/// One decimal at most: "7", "0.9".
std::string Count(double value) {
  return Decimals(value, std::abs(value - std::round(value)) < 0.05 ? 0 : 1);
}

/// The end of a long name says more than its start.
std::string Shortened(const std::string& label) {
  return label.size() <= kLongestLabel ? label
                                       : "..." + label.substr(label.size() - (kLongestLabel - 3));
}

Duration MeanOf(Duration sum, std::size_t count) {
  return Duration::FromNs(sum.ns() / static_cast<std::int64_t>(count));
}

std::string DetailOf(const PageBox& box, const PageColumn& column) {
  const auto layers = static_cast<double>(box.layers);
  if (box.payload > Bytes()) {
    const Bytes each = Bytes(box.payload.count() / static_cast<std::int64_t>(box.layers));
    return FormatBytes(each);
  }
  if (column.layers > box.layers) {
    return "in " + std::to_string(box.layers) + " of " + std::to_string(column.layers);
  }
  const std::string tasks = Count(static_cast<double>(box.tasks) / layers);
  return tasks + (tasks == "1" ? " task" : " tasks");
}

std::string BoxLabel(const PageBox& box, const PageColumn& column) {
  std::string label = EscapedLabel(Shortened(box.label)) + "\n" +
                      FormatDuration(MeanOf(box.busy, box.layers)) + ", " + DetailOf(box, column);
  const double critical = CriticalShare(box);
  constexpr double kShown = 0.005;
  if (critical >= kShown && critical <= 1 - kShown) {
    label += "\n" + Percent(critical) + " critical";
  }
  return label;
}

std::string ColumnLabel(const PageColumn& column) {
  if (column.layers == 0) {
    return EscapedLabel(column.label) + "\nkernels " + FormatDuration(column.compute);
  }
  return EscapedLabel(column.label) + ": " + std::to_string(column.layers) +
         (column.layers == 1 ? " layer" : " layers") + "\nkernels " +
         std::to_string(column.layers) + " x " +
         FormatDuration(MeanOf(column.compute, column.layers)) + " = " +
         FormatDuration(column.compute);
}

class PageDrawing {
 public:
  explicit PageDrawing(const DagPage& page) : page_(page) {
    drawing_.layout = "nop";
    drawing_.attributes = {{"splines", "line"}};
    drawing_.node_defaults = {{"fontname", "Helvetica"}, {"fontsize", "9"}, {"fixedsize", "true"}};
    nodes_.resize(page.boxes.size());
  }

  Drawing Draw() && {
    double top = -kTitle;
    for (const PageBand band : {PageBand::kForward, PageBand::kBackward}) {
      top = DrawBand(band, top);
    }
    DrawTitle();
    DrawArrows();
    return std::move(drawing_);
  }

 private:
  struct Rectangle {
    double left = 0;
    double top = 0;
    double width = 0;
    double height = 0;
  };

  std::vector<StreamRole> LanesOf(PageBand band) const {
    std::set<StreamRole> used;
    for (const PageBox& box : page_.boxes) {
      if (page_.columns[box.column].band == band) {
        used.insert(box.lane);
      }
    }
    std::vector<StreamRole> lanes;
    std::copy_if(kLanes.begin(), kLanes.end(), std::back_inserter(lanes),
                 [&](StreamRole lane) { return used.contains(lane); });
    return lanes;
  }

  std::vector<std::size_t> BoxesIn(std::size_t column, StreamRole lane) const {
    std::vector<std::size_t> boxes;
    for (std::size_t b = 0; b < page_.boxes.size(); ++b) {
      if (page_.boxes[b].column == column && page_.boxes[b].lane == lane) {
        boxes.push_back(b);
      }
    }
    return boxes;
  }

  double WidthOf(std::size_t column) const {
    std::size_t most = 2;  // for the text above
    for (const StreamRole lane : kLanes) {
      most = std::max(most, BoxesIn(column, lane).size());
    }
    return static_cast<double>(most) * (kBoxWidth + kGapX) + kGapX;
  }

  /// Returns where the next half begins.
  double DrawBand(PageBand band, double top) {
    const std::vector<StreamRole> lanes = LanesOf(band);
    if (lanes.empty()) {
      return top;
    }
    const double lanes_top = top - kHeader;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const double y = lanes_top - static_cast<double>(lane) * kLaneHeight;
      AddText({0, y, kLaneName, kLaneHeight}, std::string(StreamRoleName(lanes[lane])) + "\\l", 10);
    }
    double left = kLaneName;
    for (std::size_t column = 0; column < page_.columns.size(); ++column) {
      if (page_.columns[column].band == band) {
        const double height = static_cast<double>(lanes.size()) * kLaneHeight;
        DrawColumn(column, lanes, {left, lanes_top, WidthOf(column), height});
        left += WidthOf(column) + kColumnGap;
      }
    }
    width_ = std::max(width_, left);
    AddText({0, top, kLaneName, kHeader}, band == PageBand::kForward ? "forward\\l" : "backward\\l",
            12);
    return lanes_top - static_cast<double>(lanes.size()) * kLaneHeight - kBandGap;
  }

  void DrawColumn(std::size_t column,
                  const std::vector<StreamRole>& lanes,
                  const Rectangle& frame) {
    AddFrame(frame);
    AddText({frame.left, frame.top + kHeader, frame.width, kHeader},
            ColumnLabel(page_.columns[column]), 10);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const auto boxes = BoxesIn(column, lanes[lane]);
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        const double x = frame.left + kGapX + static_cast<double>(i) * (kBoxWidth + kGapX);
        const double y =
            frame.top - static_cast<double>(lane) * kLaneHeight - (kLaneHeight - kBoxHeight) / 2;
        DrawBox(boxes[i], {x, y, kBoxWidth, kBoxHeight});
      }
    }
  }

  void DrawBox(std::size_t b, const Rectangle& place) {
    const PageBox& box = page_.boxes[b];
    DrawingAttributes attributes = {{"shape", "box"},
                                    {"label", BoxLabel(box, page_.columns[box.column])},
                                    {"style", "filled"},
                                    {"fillcolor", FillColour(box.kind)}};
    for (const auto& attribute : LineAttributes(IsCritical(box), "#666666")) {
      attributes.push_back(attribute);
    }
    nodes_[b] = drawing_.nodes.size();
    AddNode(place, attributes);
  }

  void DrawTitle() {
    AddText({0, 0, width_, kTitle / 2}, EscapedLabel(page_.title) + "\\l", 14);
    const std::string path =
        page_.critical.empty()
            ? ""
            : "Red is the critical path, which makes the step time: " + page_.critical + ". ";
    AddText({0, -kTitle / 2, width_, kTitle / 2},
            path + "Rows are streams; boxes in a column of layers show the mean of one.\\l", 10);
  }

  /// Whether another box of the stream stands between two of them.
  bool IsBetween(std::size_t from, std::size_t to) const {
    const PageBox& box = page_.boxes[from];
    for (std::size_t b = from + 1; b < to; ++b) {
      if (page_.boxes[b].lane == box.lane) {
        return true;
      }
    }
    return false;
  }

  /// Arrows back in time lead to the next layer, those between the halves to the other half: the
  /// order of the boxes says both.
  void DrawArrows() {
    for (const DagEdge& arrow : page_.arrows) {
      const PageBox& from = page_.boxes[arrow.from];
      const PageBox& to = page_.boxes[arrow.to];
      const bool same_half = page_.columns[from.column].band == page_.columns[to.column].band;
      const bool ahead = from.lane != to.lane ? from.column <= to.column : arrow.from < arrow.to;
      if (!same_half || !ahead || (from.lane == to.lane && IsBetween(arrow.from, arrow.to))) {
        continue;
      }
      const bool critical = arrow.critical && IsCritical(from) && IsCritical(to);
      DrawingAttributes attributes = LineAttributes(critical, "#999999");
      attributes.emplace_back("arrowsize", "0.7");
      drawing_.edges.push_back({nodes_[arrow.from], nodes_[arrow.to], attributes});
    }
  }

  void AddNode(const Rectangle& place, DrawingAttributes attributes) {
    constexpr double kInch = 72;
    attributes.emplace_back("pos", Decimals(place.left + place.width / 2, 1) + "," +
                                       Decimals(place.top - place.height / 2, 1));
    attributes.emplace_back("width", Decimals(place.width / kInch, 3));
    attributes.emplace_back("height", Decimals(place.height / kInch, 3));
    drawing_.nodes.push_back({Drawing::kNone, std::move(attributes)});
  }

  void AddFrame(const Rectangle& place) {
    AddNode(place, {{"shape", "box"}, {"style", "rounded"}, {"color", "#aaaaaa"}, {"label", ""}});
  }

  void AddText(const Rectangle& place, const std::string& text, int size) {
    AddNode(place, {{"shape", "plaintext"},
                    {"fontsize", std::to_string(size)},
                    {"label", text},
                    {"margin", "0"}});
  }

  const DagPage& page_;
  Drawing drawing_;
  std::vector<std::size_t> nodes_;  // by box
  double width_ = 0;
};

}  // namespace

Drawing DrawPage(const DagPage& page) {
  return PageDrawing(page).Draw();
}

}  // namespace dcsim
