#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/ir/graph.h"

namespace dcsim {

/// What a node of a PassGraph does.
enum class PassNodeKind : std::uint8_t {
  kPlaceholder,  // an input of the graph
  kOp,           // a recorded op
  kItem,         // one tensor of an op that returns several
  kGather,       // allgather_param
  kWait,         // wait_allgather
  kRelease,      // release_param, behind each real use of a parameter
  kReduce,       // reduce_grad
  kOutput,       // the graph's return
};

/// A node as DeepCompile's passes see it.
struct PassNode {
  PassNodeKind kind = PassNodeKind::kOp;
  bool aliases = false;             // its result shares the storage of an argument
  std::vector<std::uint32_t> args;  // earlier nodes, in argument order, repeated where used twice
  ParamId param;                    // of placeholders of parameters and of inserted nodes
  OpId op;                          // of kOp and kItem
  ValueId value;                    // of recorded nodes whose result is one tensor
  int uses = 0;                     // kRelease: real uses of the parameter in the graph (n_users)
  Duration time;                    // profiled device time
  Bytes tensor_bytes;               // kGather: the parameter without padding
  Bytes allocated_bytes;            // kGather: of its buffer
  std::string name;                 // kGather: breaks ties
};

/// One forward or backward graph with DeepCompile's ops in it, in the order before scheduling:
/// placeholders, gathers with their waits, ops each followed by its releases and reductions, the
/// output. Arguments stand before their users.
struct PassGraph {
  std::vector<PassNode> nodes;
};

/// The profile that the passes see.
struct PassTimes {
  std::vector<Duration> ops;      // by OpId; empty: none is known
  std::vector<Duration> gathers;  // by ParamId; empty: none is known
};

/// Inserts gathers, waits, releases and reductions into recorded graph `g`, as ZeRO-3's pass does
/// (add_gather_and_release, add_gather_and_reduce in passes/zero3_compile.py).
///
/// Every parameter that the graph uses gets one gather and one wait ahead of all ops. Behind each
/// real use (views are looked through; of an op with several results, behind the first of them)
/// stands a release that passes the result on, so that whoever needs the result needs the release.
/// A cast that is fused into a gather (FuseCasts) is a view here; DeepSpeed takes it out.
/// A gradient's reduction stands right behind its op. Parameters are called primals_k, k their
/// place among the forward graph's inputs, and have their place in Graph::params as id.
PassGraph BuildPassGraph(const Graph& graph, std::size_t g, int ranks, const PassTimes& times);

/// By node: the last node that uses its result, looking through waits and views, or the node
/// itself where none does (get_last_uses in util.py).
std::vector<std::uint32_t> FindLastUses(const PassGraph& graph);

}  // namespace dcsim
