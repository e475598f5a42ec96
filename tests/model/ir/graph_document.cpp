#include "tests/model/ir/graph_document.h"

namespace dcsim {

Json ValidGraph() {
  return Json::parse(R"json({
 "format": "dc-graph/1",
 "name": "tiny",
 "recorder": {"dcrecord": "0.1.0", "command": "python -m dcrecord tiny"},
 "options": {"batch": 2},
 "tokens": 2,
 "params": [{"name": "w", "value": 0, "requires_grad": true, "tied": ["head"]},
            {"name": "f", "value": 1, "requires_grad": false}],
 "buffers": [{"name": "one", "value": 2, "data": "AQAAAAAAAAA="}],
 "inputs": [{"name": "ids", "value": 3, "fill": {"kind": "tokens", "vocabulary": 64}},
            {"name": "x", "value": 4, "fill": {"kind": "uniform"}}],
 "storages": [12, 6, 8, 16, 12, 8, 2, 2, 12],
 "values": [
  {"name": "w", "dtype": "bfloat16", "shape": [2, 3], "strides": [3, 1], "offset": 0, "storage": 0},
  {"name": "f", "dtype": "bfloat16", "shape": [3], "strides": [1], "offset": 0, "storage": 1},
  {"name": "one", "dtype": "int64", "shape": [1], "strides": [1], "offset": 0, "storage": 2},
  {"name": "ids", "dtype": "int64", "shape": [2], "strides": [1], "offset": 0, "storage": 3},
  {"name": "x", "dtype": "bfloat16", "shape": [2, 3], "strides": [3, 1], "offset": 0, "storage": 4},
  {"name": "v", "dtype": "bfloat16", "shape": [3, 2], "strides": [1, 3], "offset": 0, "storage": 0},
  {"name": "a", "dtype": "bfloat16", "shape": [2, 2], "strides": [2, 1], "offset": 0, "storage": 5},
  {"name": "l", "dtype": "bfloat16", "shape": [], "strides": [], "offset": 0, "storage": 6},
  {"name": "t", "dtype": "bfloat16", "shape": [], "strides": [], "offset": 0, "storage": 7},
  {"name": "g", "dtype": "bfloat16", "shape": [2, 3], "strides": [3, 1], "offset": 0, "storage": 8}],
 "schemas": ["aten::t(Tensor(a) self) -> Tensor(a)",
             "aten::mm(Tensor self, Tensor mat2) -> Tensor",
             "my::loss(Tensor a, Tensor weight, Tensor target, Tensor one) -> (Tensor, Tensor)",
             "my::grad(Tensor a, Tensor grad, SymInt[] size) -> Tensor"],
 "modules": ["", "layer"],
 "graphs": [
  {"direction": "forward",
   "inputs": [{"kind": "param", "value": 0}, {"kind": "param", "value": 1},
              {"kind": "buffer", "value": 2}, {"kind": "input", "value": 3},
              {"kind": "input", "value": 4}],
   "outputs": [{"kind": "loss", "value": 7},
               {"kind": "output", "value": 6, "name": "logits", "held": true},
               {"kind": "saved", "value": 6}],
   "ops": [{"schema": 0, "args": [{"v": 0}], "outputs": [5], "module": 1},
           {"schema": 1, "args": [{"v": 4}, {"v": 5}], "outputs": [6], "module": 1},
           {"schema": 2, "args": [{"v": 6}, {"v": 1}, {"v": 3}, {"v": 2}], "outputs": [7, null],
            "module": 0}]},
  {"direction": "backward", "forward": 0,
   "inputs": [{"kind": "saved", "value": 6}, {"kind": "tangent", "value": 8, "of": 7}],
   "outputs": [{"kind": "gradient", "value": 9, "param": 0}],
   "ops": [{"schema": 3, "args": [{"v": 6}, {"v": 8}, [2, 3]], "outputs": [9], "module": 1,
            "recompute": true}]}]
})json");
}

}  // namespace dcsim
