#include "tests/support/product_graph.h"

#include "model/ir/graph_text.h"

namespace dcsim {

Graph ProductGraph(const std::string& op) {
  return ParseGraphText(R"(
graph product 2 tokens
param w bfloat16[3,5]
param bias bfloat16[5]
param matrix bfloat16[2,5]
input x bfloat16[2,3]
forward
  a: bfloat16[2,5] = )" +
                        op + R"(
  l: bfloat16[] = aten::sum(a)
  loss l
)");
}

}  // namespace dcsim
