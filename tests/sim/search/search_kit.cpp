#include "tests/sim/search/search_kit.h"

#include <sstream>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

std::string Shape(std::int64_t rows, std::int64_t columns) {
  return "bfloat16[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

/// Columns of the layer's output; its input's for layer -1.
std::int64_t Width(int layer) {
  return 4096 + 1024 * ((layer + 1) % 3);
}

}  // namespace

Graph ProductChain(int layers) {
  constexpr std::int64_t kRows = 512;
  std::ostringstream text;
  text << "graph chain 2048 tokens\n";
  for (int i = 0; i < layers; ++i) {
    text << "param w" << i << " " << Shape(Width(i - 1), Width(i)) << "\n";
  }
  text << "input a0 " << Shape(kRows, Width(-1)) << "\nforward\n";
  for (int i = 0; i < layers; ++i) {
    text << "  a" << i + 1 << ": " << Shape(kRows, Width(i)) << " = aten::mm(a" << i << ", w" << i
         << ")\n";
  }
  text << "  l: bfloat16[] = aten::sum(a" << layers << ")\n  loss l\n";
  for (int i = 1; i < layers; ++i) {
    text << "  save a" << i << "\n";
  }
  text << "backward of 0\n  tangent t: bfloat16[] of l\n  g" << layers << ": "
       << Shape(kRows, Width(layers - 1)) << " = aten::fill(t)\n";
  for (int i = layers - 1; i >= 0; --i) {
    text << "  x" << i << ": " << Shape(Width(i - 1), kRows) << " views a" << i << " = aten::t(a"
         << i << ")\n";
    text << "  d" << i << ": " << Shape(Width(i - 1), Width(i)) << " = aten::mm(x" << i << ", g"
         << i + 1 << ")\n  gradient w" << i << " = d" << i << "\n";
    if (i > 0) {
      text << "  v" << i << ": " << Shape(Width(i), Width(i - 1)) << " views w" << i
           << " = aten::t(w" << i << ")\n";
      text << "  g" << i << ": " << Shape(kRows, Width(i - 1)) << " = aten::mm(g" << i + 1 << ", v"
           << i << ")\n";
    }
  }
  return ParseGraphText(text.str());
}

SearchSpace SmallSpace(std::int64_t most_ahead, const Json& options) {
  Json all = {{"stage", 3}, {"reduce_bucket", "40e6 elements"}};
  all.update(options);
  const Json document = {{"format", "dc-space/1"},
                         {"options", all},
                         {"gathers", {{"most_ahead", most_ahead}, {"most_in_launch", 2}}}};
  return ReadSearchSpace(document, PointerLocator("small space"));
}

}  // namespace dcsim
