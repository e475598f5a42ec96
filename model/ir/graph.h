#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/ir/backend.h"
#include "model/ir/dtype.h"

namespace dcsim {

/// A tensor of the step: a view of one storage. Strides and offset count elements.
struct Value {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  StorageId storage;

  std::int64_t numel() const;
  /// Bytes of the elements themselves; the storage may hold more.
  Bytes bytes() const { return Bytes(numel() * ElementBytes(dtype)); }
  bool is_contiguous() const;
};

/// What is allocated and freed. Every value is a view of one.
struct Storage {
  Bytes bytes;
};

/// A parameter of the model, whole: how it is cut over ranks is the schedule's matter
/// (`ShardElements`, `GatheredBytes`).
struct Param {
  std::string name;
  ValueId value;
  bool requires_grad = true;
  std::vector<std::string> tied;
  std::optional<DType> gather_dtype =
      {};  // of its gathered form, where it is not its own (FuseCasts)
};

/// A resident tensor that is no parameter: a module's buffer or a lifted constant. An op that
/// writes in place may change it (running statistics of batch norms).
struct ConstantBuffer {
  std::string name;
  ValueId value;
  std::string data;  // little-endian bytes, before the first step
};

/// How the reference training fills an input.
enum class FillKind : std::uint8_t { kTokens, kUniform };

struct Input {
  std::string name;
  ValueId value;
  FillKind fill = FillKind::kTokens;
  std::int64_t vocabulary = 0;  // of kTokens
};

/// Arguments of an op that are no tensors. Names are PyTorch's without "torch.".
struct DeviceArgument {
  bool local = true;
  bool operator==(const DeviceArgument&) const = default;
};
struct LayoutArgument {
  std::string name;
  bool operator==(const LayoutArgument&) const = default;
};
struct MemoryFormatArgument {
  std::string name;
  bool operator==(const MemoryFormatArgument&) const = default;
};

/// One argument in schema order. monostate is None or an undefined tensor; inside a list of tensors
/// an undefined one is ValueId::None().
using Argument = std::variant<std::monostate,
                              ValueId,
                              std::vector<ValueId>,
                              std::int64_t,
                              double,
                              bool,
                              std::string,
                              std::vector<std::int64_t>,
                              std::vector<double>,
                              std::vector<bool>,
                              DType,
                              DeviceArgument,
                              LayoutArgument,
                              MemoryFormatArgument>;

/// How a Triton kernel goes through what it reduces: not at all, in a loop, or holding all of it.
enum class KernelKind : std::uint8_t { kPointwise, kReduction, kPersistentReduction };

/// An argument of a launch: its name, and its Triton type ("*bf16" points to elements).
struct KernelArgument {
  std::string name;
  std::string type;

  bool is_pointer() const { return type.starts_with('*'); }
};

/// Block sizes, warps and stages of a Triton kernel by name ("XBLOCK", "num_warps").
using KernelConfig = std::map<std::string, std::int64_t>;

/// What a kernel computes for each element, as far as its time shows it.
struct KernelMath {
  std::int64_t trigonometric_calls = 0;  // of sine and cosine
  std::int64_t error_functions = 0;
  std::int64_t exponentials = 0;
  bool combines_softmax = false;  // puts softmaxes together while they are read
  bool mixes_layouts = false;     // a reduction that Inductor finds neither inner nor outer
};

/// An op of a stand-in: operators that do to a launch's arguments what a Triton kernel does. Their
/// tensors have numbers of their own: first the arguments by position, then what each op makes.
struct StandInOp {
  std::uint32_t schema = 0;  // index into Graph::schemas
  std::vector<Argument> arguments;
  std::vector<ValueId> outputs;  // None() where an op changes a tensor
};

/// A Triton kernel that Inductor wrote.
struct TritonKernel {
  std::string name;
  std::string hash;  // of its source
  KernelKind kind = KernelKind::kPointwise;
  std::vector<KernelArgument> signature;
  std::string grid;  // Inductor's rule
  std::int64_t loads = 0;
  std::int64_t stores = 0;
  std::int64_t reductions = 0;
  std::map<std::string, std::int64_t> passes;  // by argument: loops that read it, if more than one
  std::vector<KernelConfig> configs;           // candidates, of which a GPU runs its fastest
  std::string source;
  KernelMath math;                  // follows from the source
  std::vector<std::string> aten;    // operators that are fused in it
  std::vector<StandInOp> stand_in;  // empty where the recording has none
};

/// Bytes of a value that a kernel moves.
struct ValueBytes {
  ValueId value;
  Bytes bytes;
};

/// A launch of a Triton kernel. An argument is a value or a number.
struct KernelLaunch {
  std::uint32_t kernel = 0;  // index into Graph::kernels
  std::vector<ValueBytes> reads;
  std::vector<ValueBytes> writes;
};

/// One kernel of the step, in the place where the host issues it: a call of an operator, which may
/// launch several, or a launch of a Triton kernel.
struct Op {
  std::uint32_t schema = 0;  // index into Graph::schemas; of a launch without meaning
  std::uint32_t module = 0;  // index into Graph::modules
  GraphId graph;
  bool returns_list = false;
  bool recompute = false;
  std::vector<Argument> arguments;
  std::vector<ValueId> inputs;   // every tensor that is read, in the order of the arguments
  std::vector<ValueId> outputs;  // None() where a return is unused or no tensor
  std::vector<ValueId> reuses;   // those that take over a storage whose values are over
  std::optional<KernelLaunch> launch;

  /// The first output that is one, or None().
  ValueId first_output() const;
};

enum class Direction : std::uint8_t { kForward, kBackward };

enum class GraphInputKind : std::uint8_t { kParam, kBuffer, kInput, kSaved, kTangent, kActivation };

struct GraphInput {
  GraphInputKind kind = GraphInputKind::kParam;
  ValueId value;
  ValueId of;  // kTangent: the forward output that this is the gradient of
};

enum class GraphOutputKind : std::uint8_t { kLoss, kOutput, kSaved, kGradient, kTangent };

struct GraphOutput {
  GraphOutputKind kind = GraphOutputKind::kOutput;
  ValueId value;
  std::string name;   // kOutput
  bool held = false;  // kOutput: the caller keeps it until the next forward has returned
  ParamId param;      // kGradient
  ValueId of;         // kTangent
};

/// One forward or backward graph of the step; its ops are the ids [first_op, first_op + op_count).
struct Subgraph {
  Direction direction = Direction::kForward;
  GraphId forward;  // of a backward graph: the forward graph that it differentiates
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
  std::size_t first_op = 0;
  std::size_t op_count = 0;
};

/// For whom Inductor lowered a graph. `notes`: JSON text of versions and settings, for people.
struct CompiledFor {
  std::vector<int> stages;  // of ZeRO
  std::string notes;
};

/// What the recorder was asked for; only for people and reports.
struct RecordingNotes {
  std::string command;
  std::string options;   // JSON text of the options
  std::string recorder;  // JSON text of the versions and the command
};

/// One micro-step of a training job on one device, unsharded and without collectives: the recorded
/// forward and backward graphs in execution order. An immutable value; `BuildGraph` checks it.
/// File form: dc-graph/1 (docs/reference/formats.md).
struct Graph {
  std::string name;
  std::uint64_t hash = 0;   // of the file's uncompressed bytes; names the graph in profiles
  std::int64_t tokens = 0;  // of one micro-step
  RecordingNotes notes;
  std::vector<Param> params;
  std::vector<ConstantBuffer> buffers;
  std::vector<Input> inputs;
  std::vector<Storage> storages;
  std::vector<Value> values;
  std::vector<std::string> schemas;
  std::vector<std::string> modules;
  std::optional<CompiledFor> compiled;
  std::vector<TritonKernel> kernels;
  std::vector<Op> ops;  // of all graphs, in execution order
  std::vector<Subgraph> graphs;

  const Value& value(ValueId id) const { return values[id.index()]; }
  const Storage& storage(StorageId id) const { return storages[id.index()]; }
  const Op& op(OpId id) const { return ops[id.index()]; }
  const Param& param(ParamId id) const { return params[id.index()]; }
  StorageId storage_of(ValueId id) const { return values[id.index()].storage; }

  Backend backend() const { return compiled ? Backend::kInductor : Backend::kAten; }
  const TritonKernel& kernel(const KernelLaunch& launch) const { return kernels[launch.kernel]; }
  /// "aten::mm" of "aten::mm(Tensor self, …) -> Tensor"; with overload "aten::add.Tensor". The
  /// kernel's name of a launch.
  std::string_view target(OpId id) const;
  /// Elements of a parameter, whole.
  std::int64_t numel(ParamId id) const { return value(param(id).value).numel(); }
  DType dtype(ParamId id) const { return value(param(id).value).dtype; }
  DType gather_dtype(ParamId id) const { return param(id).gather_dtype.value_or(dtype(id)); }
  /// Elements of all parameters.
  std::int64_t parameter_count() const;
};

}  // namespace dcsim
