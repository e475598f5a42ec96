#include "tests/support/compiled_document.h"

#include "model/ir/graph_reader.h"

namespace dcsim {
namespace {

Json Kernel(const char* name, const char* kind, const Json& signature, const Json& passes) {
  return {{"name", name},     {"hash", "0123456789abcdef"},
          {"kind", kind},     {"signature", signature},
          {"grid", "Grid1D"}, {"loads", 1},
          {"stores", 1},      {"reductions", 0},
          {"passes", passes}, {"configs", {{{"XBLOCK", 4}, {"R0_BLOCK", 4}, {"num_warps", 4}}}},
          {"source", "pass"}, {"aten", {"aten.relu.default"}}};
}

/// What the kernels compute: relu, sum, and the slope of a product's weights.
void AddStandIns(Json& document) {
  document["schemas"] = {"aten::mm(Tensor self, Tensor mat2) -> Tensor",
                         "aten::relu(Tensor self) -> Tensor",
                         "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> "
                         "Tensor(a!)",
                         "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                         "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
                         "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
                         "aten::t(Tensor(a) self) -> Tensor(a)"};
  document["kernels"][0]["computes"] = Json::parse(R"([
    {"schema": 1, "args": [{"v": 0}], "outputs": [2]},
    {"schema": 2, "args": [{"v": 0}, {"v": 2}, false], "outputs": [null]}])");
  document["kernels"][1]["computes"] = Json::parse(R"([
    {"schema": 3, "args": [{"v": 0}, null], "outputs": [4]},
    {"schema": 2, "args": [{"v": 1}, {"v": 4}, false], "outputs": [null]}])");
  document["kernels"][2]["computes"] = Json::parse(R"([
    {"schema": 4, "args": [{"v": 0}, 0], "outputs": [4]},
    {"schema": 5, "args": [{"v": 4}, {"v": 2}], "outputs": [5]},
    {"schema": 6, "args": [{"v": 1}], "outputs": [6]},
    {"schema": 0, "args": [{"v": 6}, {"v": 5}], "outputs": [7]},
    {"schema": 2, "args": [{"v": 0}, {"v": 7}, false], "outputs": [null]}])");
}

Json Tensor(const char* name, const Json& shape, const Json& strides, int storage) {
  return {{"name", name},       {"dtype", "float32"}, {"shape", shape},
          {"strides", strides}, {"offset", 0},        {"storage", storage}};
}

Json Forward() {
  return Json::parse(R"({
    "direction": "forward",
    "inputs": [{"kind": "param", "value": 0}, {"kind": "input", "value": 1}],
    "outputs": [{"kind": "loss", "value": 4}, {"kind": "saved", "value": 3}],
    "ops": [
      {"schema": 0, "args": [{"v": 1}, {"v": 0}], "outputs": [2], "module": 0},
      {"kernel": 0, "args": [{"v": 3}, 16], "outputs": [3], "reads": [[2, 64]],
       "writes": [[3, 64]], "module": 0, "reuses": [3]},
      {"kernel": 1, "args": [{"v": 3}, {"v": 4}, 1, 16], "outputs": [4], "reads": [[3, 64]],
       "writes": [[4, 4]], "module": 0}]})");
}

Json Backward() {
  return Json::parse(R"({
    "direction": "backward", "forward": 0,
    "inputs": [{"kind": "saved", "value": 3}, {"kind": "input", "value": 1},
               {"kind": "tangent", "value": 5, "of": 4}],
    "outputs": [{"kind": "gradient", "value": 6, "param": 0}],
    "ops": [
      {"kernel": 2, "args": [{"v": 6}, {"v": 1}, {"v": 5}, 16], "outputs": [6],
       "reads": [[3, 64], [1, 64], [5, 4]], "writes": [[6, 64]], "module": 0, "reuses": [6]}]})");
}

}  // namespace

Json CompiledDocument() {
  const Json square = {4, 4};
  const Json rows = {4, 1};
  const Json none = Json::array();
  const Json nothing = Json::object();
  Json document = {{"format", "dc-graph/1"},
                   {"name", "small"},
                   {"recorder", nothing},
                   {"options", nothing},
                   {"tokens", 4}};
  document["backend"] = Json::parse(R"({"name": "inductor", "stages": [3], "deepspeed": "0.19.8",
    "torch": "2.11.0", "triton": "3.6.0", "architecture": "sm_90", "multiprocessors": 132,
    "settings": {"shape_padding": false}})");
  document["params"] = Json::parse(R"([{"name": "w", "value": 0, "requires_grad": true}])");
  document["buffers"] = none;
  document["inputs"] = Json::parse(R"([{"name": "x", "value": 1, "fill": {"kind": "uniform"}}])");
  document["storages"] = {64, 64, 64, 4, 4};
  document["values"] = {Tensor("w", square, rows, 0), Tensor("x", square, rows, 1),
                        Tensor("y", square, rows, 2), Tensor("z", square, rows, 2),
                        Tensor("l", none, none, 3),   Tensor("t", none, none, 4),
                        Tensor("g", square, rows, 2)};
  document["modules"] = {""};
  document["kernels"] = {
      Kernel("relu", "pointwise", Json::parse(R"([["in_out_ptr0", "*fp32"], ["xnumel", "i32"]])"),
             nothing),
      Kernel("total", "reduction", Json::parse(R"([["in_ptr0", "*fp32"], ["out_ptr0", "*fp32"],
             ["xnumel", "constexpr"], ["r0_numel", "i32"]])"),
             {{"in_ptr0", 2}}),
      Kernel("slope", "pointwise", Json::parse(R"([["in_out_ptr0", "*fp32"], ["in_ptr0", "*fp32"],
             ["in_ptr1", "*fp32"], ["xnumel", "i32"]])"),
             nothing)};
  AddStandIns(document);
  document["graphs"] = {Forward(), Backward()};
  return document;
}

Graph CompiledGraph() {
  return ParseGraph(CompiledDocument().dump(), "small.json");
}

}  // namespace dcsim
