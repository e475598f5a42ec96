#include "tests/support/tiny_graphs.h"

#include <sstream>

#include "model/base/text.h"
#include "model/ir/graph_text.h"
#include "model/ir/schedule_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"

namespace dcsim {

Graph TwoLayers() {
  return ParseGraphText(R"(
graph two-layers 2 tokens
param w1 bfloat16[3,5]
param w2 bfloat16[5,1]
input x bfloat16[2,3]
forward
  a: bfloat16[2,5] = aten::mm(x, w1)
  b: bfloat16[2,1] = aten::mm(a, w2)
  l: bfloat16[] = aten::sum(b)
  loss l
  save a
backward of 0
  tangent t: bfloat16[] of l
  gb: bfloat16[2,1] = aten::fill(t)
  g2: bfloat16[5,1] = aten::mm(a, gb)
  ga: bfloat16[2,5] = aten::mm(gb, w2)
  g1: bfloat16[3,5] = aten::mm(x, ga)
  gradient w1 = g1
  gradient w2 = g2
)");
}

Graph OneLayer() {
  return ParseGraphText(R"(
graph one-layer 4 tokens
param w bfloat16[1000,1000]
input x bfloat16[4,1000]
forward
  a: bfloat16[4,1000] = aten::mm(x, w)
  l: bfloat16[] = aten::sum(a)
  loss l
backward of 0
  tangent t: bfloat16[] of l
  ga: bfloat16[4,1000] = aten::fill(t)
  xt: bfloat16[1000,4] views x = aten::t(x)
  gw: bfloat16[1000,1000] = aten::mm(xt, ga)
  gradient w = gw
)");
}

PlanSpec TinySpec(int stage) {
  PlanSpec spec;
  spec.options.stage = stage;
  spec.options.reduce_bucket = 1000;
  return spec;
}

Schedule LowerTiny(const PlanSpec& spec, const Graph& graph) {
  return Lower(Resolve(spec, graph, 2), graph, nullptr, {});
}

std::string TinyScheduleText(const PlanSpec& spec, const Graph& graph) {
  return "\n" + PrintScheduleText(LowerTiny(spec, graph), graph);
}

std::string TinyTaskLines(const PlanSpec& spec,
                          const Graph& graph,
                          std::size_t first,
                          std::size_t last) {
  std::istringstream text(TinyScheduleText(spec, graph));
  std::string lines = "\n";
  for (std::string line; std::getline(text, line);) {
    const auto task = FindInteger(std::string_view(line).substr(0, line.find(' ')));
    if (task && *task >= static_cast<std::int64_t>(first) &&
        *task <= static_cast<std::int64_t>(last)) {
      lines += line + "\n";
    }
  }
  return lines;
}

}  // namespace dcsim
