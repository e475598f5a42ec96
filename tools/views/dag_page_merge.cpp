#include "tools/views/dag_page_merge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace dcsim {
namespace {

/// Boxes of the compute stream side by side in one half of the page.
constexpr std::size_t kWidest = 9;
/// Of a column outside of layers, the optimizer's included.
constexpr std::size_t kOuter = 2;
/// Of one that holds all modules, beside the optimizer.
constexpr std::size_t kAlone = 4;
constexpr std::size_t kLeast = 2;

/// How many boxes of a kind a column may have on the compute stream.
std::size_t MostBoxes(const DagPage& page, const PageColumn& column) {
  std::size_t outer = 0;
  std::size_t layered = 0;
  for (const PageColumn& other : page.columns) {
    if (other.band == column.band) {
      ++(other.layers > 0 ? layered : outer);
    }
  }
  if (column.layers == 0) {
    return layered == 0 ? kAlone : kOuter;
  }
  const std::size_t left = kWidest - std::min(kWidest, kOuter * outer);
  return std::max(kLeast, left / layered);
}

/// Boxes that may become one.
using Group = std::tuple<std::size_t, StreamRole, DagNodeKind>;

void Absorb(PageBox& sum, const PageBox& box) {
  sum.layers = std::max(sum.layers, box.layers);
  sum.tasks += box.tasks;
  sum.busy += box.busy;
  sum.critical += box.critical;
  sum.payload += box.payload;
}

/// Makes one box of all members but the longest `most - 1`, in the place of the first of them;
/// `replacement` learns which.
void MergeGroup(DagPage& page,
                std::vector<std::size_t> members,
                std::size_t most,
                std::vector<std::size_t>& replacement) {
  if (members.size() <= most) {
    return;
  }
  std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return page.boxes[a].busy > page.boxes[b].busy;
  });
  members.erase(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(most - 1));
  const std::size_t first = *std::min_element(members.begin(), members.end());
  PageBox& sum = page.boxes[first];
  sum.label = std::to_string(members.size()) + " more";
  for (const std::size_t member : members) {
    replacement[member] = first;
    if (member != first) {
      Absorb(sum, page.boxes[member]);
    }
  }
}

/// Drops replaced boxes, and renumbers.
DagPage Compact(const DagPage& page, const std::vector<std::size_t>& replacement) {
  std::vector<std::size_t> kept;
  for (std::size_t b = 0; b < page.boxes.size(); ++b) {
    if (replacement[b] == b) {
      kept.push_back(b);
    }
  }
  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(page.boxes[a].column, page.boxes[a].lane) <
           std::pair(page.boxes[b].column, page.boxes[b].lane);
  });
  DagPage compact{page.title, page.critical, page.columns, {}, {}};
  std::vector<std::size_t> renumbered(page.boxes.size());
  for (const std::size_t b : kept) {
    renumbered[b] = compact.boxes.size();
    compact.boxes.push_back(page.boxes[b]);
  }
  std::vector<std::size_t> become(replacement.size());
  std::transform(replacement.begin(), replacement.end(), become.begin(),
                 [&](std::size_t node) { return renumbered[node]; });
  compact.arrows = MovedEdges(page.arrows, become);
  return compact;
}

}  // namespace

DagPage MergeSmallBoxes(DagPage page) {
  std::map<Group, std::vector<std::size_t>> groups;
  for (std::size_t b = 0; b < page.boxes.size(); ++b) {
    const PageBox& box = page.boxes[b];
    if (box.lane == StreamRole::kCompute) {
      groups[{box.column, box.lane, box.kind}].push_back(b);
    }
  }
  std::vector<std::size_t> replacement(page.boxes.size());
  for (std::size_t b = 0; b < replacement.size(); ++b) {
    replacement[b] = b;
  }
  for (const auto& [group, members] : groups) {
    const PageColumn& column = page.columns[std::get<std::size_t>(group)];
    MergeGroup(page, members, MostBoxes(page, column), replacement);
  }
  return Compact(page, replacement);
}

}  // namespace dcsim
