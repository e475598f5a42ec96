#include "model/ir/kernel_reader.h"

#include <algorithm>
#include <string_view>

#include "model/ir/argument_reader.h"
#include "model/ir/graph_names.h"
#include "model/ir/stand_in.h"

namespace dcsim {
namespace {

void ReadCount(ObjectReader& object, std::string_view key, std::int64_t& target) {
  if (object.Required(key, ReadInteger, target) && target < 0) {
    object.faults().Add(object.At(key), "expected a count of 0 or more");
  }
}

void ReadStages(ObjectReader& object, std::vector<int>& stages) {
  const Json* list = object.RequireArray("stages");
  const Path path = object.At("stages");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto stage = ReadInteger((*list)[i], Path(path, i), object.faults());
    if (stage && (*stage < 1 || *stage > 3)) {
      object.faults().Add(Path(path, i), "expected a ZeRO stage from 1 to 3");
    }
    stages.push_back(static_cast<int>(stage.value_or(0)));
  }
}

CompiledFor ReadBackend(const Json& json, const Path& path, Faults& faults) {
  ObjectReader object(json, path, faults);
  CompiledFor compiled;
  std::string name;
  if (object.Required("name", ReadString, name) && name != "inductor") {
    faults.Add(object.At("name"), "expected inductor");
  }
  ReadStages(object, compiled.stages);
  std::int64_t multiprocessors = 0;
  std::string version;
  for (const std::string_view key : {"deepspeed", "torch", "triton", "architecture"}) {
    object.Required(key, ReadString, version);
  }
  ReadCount(object, "multiprocessors", multiprocessors);
  object.Require("settings");
  object.RejectUnknown();
  compiled.notes = json.dump();
  return compiled;
}

void ReadSignature(ObjectReader& object, std::vector<KernelArgument>& signature) {
  const Json* list = object.RequireArray("signature");
  const Path path = object.At("signature");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Json& pair = (*list)[i];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      object.faults().Add(Path(path, i), "expected the name and the type of an argument");
      continue;
    }
    signature.push_back({pair[0].get<std::string>(), pair[1].get<std::string>()});
  }
}

/// Whole numbers by name; Triton writes a switch as a truth value.
KernelConfig ReadNumbers(const Json& json, const Path& path, Faults& faults) {
  KernelConfig numbers;
  if (!json.is_object()) {
    faults.Add(path, "expected an object of whole numbers");
    return numbers;
  }
  for (const auto& [key, value] : json.items()) {
    const Path here(path, key);
    numbers[key] = value.is_boolean() ? static_cast<std::int64_t>(value.get<bool>())
                                      : ReadInteger(value, here, faults).value_or(0);
  }
  return numbers;
}

/// Calls of functions of Triton or of CUDA's device library, by their name before "(".
std::int64_t CountCalls(std::string_view source, std::string_view function) {
  std::int64_t count = 0;
  for (const std::string_view library : {"tl_math.", "libdevice."}) {
    const std::string call = std::string(library) + std::string(function) + "(";
    for (std::size_t at = source.find(call); at != std::string_view::npos;
         at = source.find(call, at + call.size())) {
      ++count;
    }
  }
  return count;
}

KernelMath MathOf(std::string_view source) {
  KernelMath math;
  math.trigonometric_calls = CountCalls(source, "cos") + CountCalls(source, "sin");
  math.error_functions = CountCalls(source, "erf");
  math.exponentials = CountCalls(source, "exp");
  const auto has = [source](std::string_view text) {
    return source.find(text) != std::string_view::npos;
  };
  math.combines_softmax = has("online_softmax_combine");
  math.mixes_layouts = has("reduction_hint=ReductionHint.DEFAULT");
  return math;
}

TritonKernel ReadKernel(const Json& json, std::size_t schemas, const Path& path, Faults& faults) {
  ObjectReader object(json, path, faults);
  TritonKernel kernel;
  object.Required("name", ReadString, kernel.name);
  object.Required("hash", ReadString, kernel.hash);
  if (object.Require("kind") != nullptr) {
    object.OptionalChoice("kind", kKernelKindNames, kernel.kind);
  }
  ReadSignature(object, kernel.signature);
  object.Required("grid", ReadString, kernel.grid);
  ReadCount(object, "loads", kernel.loads);
  ReadCount(object, "stores", kernel.stores);
  ReadCount(object, "reductions", kernel.reductions);
  if (const Json* passes = object.Require("passes")) {
    kernel.passes = ReadNumbers(*passes, object.At("passes"), faults);
  }
  const Json* configs = object.RequireArray("configs");
  const Path configs_path = object.At("configs");
  for (std::size_t i = 0; configs != nullptr && i < configs->size(); ++i) {
    kernel.configs.push_back(ReadNumbers((*configs)[i], Path(configs_path, i), faults));
  }
  if (configs != nullptr && configs->empty()) {
    faults.Add(configs_path, "expected at least one configuration");
  }
  object.Required("source", ReadString, kernel.source);
  kernel.math = MathOf(kernel.source);
  const Json* aten = object.RequireArray("aten");
  const Path aten_path = object.At("aten");
  for (std::size_t i = 0; aten != nullptr && i < aten->size(); ++i) {
    kernel.aten.push_back(ReadString((*aten)[i], Path(aten_path, i), faults).value_or(""));
  }
  ReadStandIn(object, schemas, kernel);
  object.RejectUnknown();
  return kernel;
}

std::vector<ValueBytes> ReadTraffic(ObjectReader& object,
                                    std::string_view key,
                                    std::size_t values) {
  std::vector<ValueBytes> traffic;
  const Json* list = object.RequireArray(key);
  const Path path = object.At(key);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Json& pair = (*list)[i];
    const Path here(path, i);
    if (!pair.is_array() || pair.size() != 2) {
      object.faults().Add(here, "expected a value and its bytes");
      continue;
    }
    const ValueId value = ReadValueId(pair[0], values, Path(here, 0), object.faults());
    const auto bytes = ReadInteger(pair[1], Path(here, 1), object.faults());
    if (bytes && *bytes < 0) {
      object.faults().Add(Path(here, 1), "expected bytes of 0 or more");
    }
    traffic.push_back({value, Bytes(bytes.value_or(0))});
  }
  return traffic;
}

Json PrintTraffic(const std::vector<ValueBytes>& traffic) {
  Json list = Json::array();
  for (const ValueBytes& each : traffic) {
    list.push_back({each.value.index(), each.bytes.count()});
  }
  return list;
}

}  // namespace

void ReadCompiled(ObjectReader& document, Graph& graph) {
  if (const Json* backend = document.Find("backend")) {
    graph.compiled = ReadBackend(*backend, document.At("backend"), document.faults());
  }
  const Json* kernels = document.FindArray("kernels");
  const Path path = document.At("kernels");
  for (std::size_t i = 0; kernels != nullptr && i < kernels->size(); ++i) {
    graph.kernels.push_back(
        ReadKernel((*kernels)[i], graph.schemas.size(), Path(path, i), document.faults()));
  }
}

void ReadLaunch(ObjectReader& object, const Graph& graph, Op& op) {
  KernelLaunch launch;
  std::int64_t kernel = 0;
  const auto count = static_cast<std::int64_t>(graph.kernels.size());
  if (object.Required("kernel", ReadInteger, kernel) && (kernel < 0 || kernel >= count)) {
    object.faults().Add(object.At("kernel"), "expected an index into kernels, which has " +
                                                 std::to_string(count) + " entries");
    kernel = 0;
  }
  launch.kernel = static_cast<std::uint32_t>(kernel);
  launch.reads = ReadTraffic(object, "reads", graph.values.size());
  launch.writes = ReadTraffic(object, "writes", graph.values.size());
  std::erase_if(op.inputs, [&op](ValueId input) {
    return std::find(op.outputs.begin(), op.outputs.end(), input) != op.outputs.end();
  });
  for (const ValueBytes& read : launch.reads) {
    if (std::find(op.inputs.begin(), op.inputs.end(), read.value) == op.inputs.end()) {
      op.inputs.push_back(read.value);
    }
  }
  op.launch = std::move(launch);
}

Json PrintBackend(const CompiledFor& compiled) {
  return Json::parse(compiled.notes);
}

Json PrintKernel(const TritonKernel& kernel) {
  Json signature = Json::array();
  for (const KernelArgument& argument : kernel.signature) {
    signature.push_back({argument.name, argument.type});
  }
  Json configs = Json::array();
  for (const KernelConfig& config : kernel.configs) {
    configs.push_back(config);
  }
  Json json = {{"name", kernel.name},
               {"hash", kernel.hash},
               {"kind", kKernelKindNames[static_cast<std::size_t>(kernel.kind)]},
               {"signature", signature},
               {"grid", kernel.grid},
               {"loads", kernel.loads},
               {"stores", kernel.stores},
               {"reductions", kernel.reductions},
               {"passes", kernel.passes},
               {"configs", configs},
               {"source", kernel.source},
               {"aten", kernel.aten}};
  PrintStandIn(kernel, json);
  return json;
}

void PrintLaunch(const KernelLaunch& launch, Json& op) {
  op["kernel"] = launch.kernel;
  op["reads"] = PrintTraffic(launch.reads);
  op["writes"] = PrintTraffic(launch.writes);
}

}  // namespace dcsim
