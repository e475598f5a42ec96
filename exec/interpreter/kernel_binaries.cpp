#include "exec/interpreter/kernel_binaries.h"

#include <algorithm>

#include "exec/interpreter/launch_arguments.h"
#include "exec/interpreter/launch_grid.h"
#include "model/base/base64.h"
#include "model/ir/document.h"

namespace dcsim::exec {
namespace {

/// Positions in a signature, in rising order.
std::vector<std::size_t> ReadPositions(ObjectReader& object, std::string_view key) {
  std::vector<std::size_t> positions;
  const Json* list = object.RequireArray(key);
  const Path path = object.At(key);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto position = ReadInteger((*list)[i], Path(path, i), object.faults());
    const std::int64_t least =
        positions.empty() ? 0 : static_cast<std::int64_t>(positions.back()) + 1;
    if (position && *position < least) {
      object.faults().Add(Path(path, i), "expected positions in rising order");
    }
    positions.push_back(static_cast<std::size_t>(std::max(position.value_or(0), least)));
  }
  return positions;
}

KernelConfig ReadConfig(ObjectReader& object) {
  KernelConfig config;
  const Json* json = object.Require("config");
  const Path path = object.At("config");
  if (json == nullptr) {
    return config;
  }
  if (!json->is_object() || !json->contains("num_warps")) {
    object.faults().Add(path, "expected an object of whole numbers with num_warps");
    return config;
  }
  for (const auto& [key, value] : json->items()) {
    const Path here(path, key);
    const auto number = ReadInteger(value, here, object.faults());
    if (number && *number < 1) {
      object.faults().Add(here, "expected a number of at least 1");
    }
    config[key] = number.value_or(1);
  }
  return config;
}

void ReadBinary(const Json& json, const Path& path, Faults& faults, KernelBinaries& binaries) {
  ObjectReader object(json, path, faults);
  KernelBinary binary;
  std::string hash;
  std::string cubin;
  object.Required("hash", ReadString, hash);
  binary.config = ReadConfig(object);
  object.Required("entry", ReadString, binary.entry);
  if (object.Required("shared", ReadInteger, binary.shared) && binary.shared < 0) {
    faults.Add(object.At("shared"), "expected bytes of 0 or more");
  }
  binary.passed = ReadPositions(object, "arguments");
  binary.aligned = ReadPositions(object, "aligned");
  if (!std::ranges::includes(binary.passed, binary.aligned)) {
    faults.Add(object.At("aligned"), "expected positions that are among arguments");
  }
  if (object.Required("cubin", ReadString, cubin)) {
    binary.cubin = FindBase64(cubin).value_or("");
    if (!binary.cubin.starts_with("\x7f"
                                  "ELF")) {
      faults.Add(object.At("cubin"), "expected a cubin in base64");
    }
  }
  object.RejectUnknown();
  std::vector<KernelBinary>& others = binaries.by_hash[hash];
  if (std::ranges::find(others, binary.config, &KernelBinary::config) != others.end()) {
    faults.Add(path, "kernel " + hash + " is there twice with the same configuration");
  }
  others.push_back(std::move(binary));
}

/// The kernel's signature as the binary has it: everything but what is compiled in.
bool FitsSignature(const TritonKernel& kernel, const KernelBinary& binary) {
  std::vector<std::size_t> passed;
  for (std::size_t i = 0; i < kernel.signature.size(); ++i) {
    if (kernel.signature[i].type != "constexpr") {
      passed.push_back(i);
    }
  }
  return passed == binary.passed && std::ranges::all_of(binary.aligned, [&](std::size_t i) {
           return kernel.signature[i].is_pointer();
         });
}

std::string FindUnlaunchable(const TritonKernel& kernel, const KernelBinary& binary) {
  if (std::ranges::find(kernel.configs, binary.config) == kernel.configs.end()) {
    return "was compiled with another configuration";
  }
  if (!FitsSignature(kernel, binary)) {
    return "was compiled with other arguments";
  }
  for (const std::size_t i : binary.passed) {
    const KernelArgument& argument = kernel.signature[i];
    if (!CanPass(argument)) {
      return "takes " + argument.name + " of type " + argument.type + ", which dc-run cannot pass";
    }
  }
  return FindGridFault(kernel.grid, binary.config);
}

std::string FindUnlaunchable(const TritonKernel& kernel, const KernelBinaries& binaries) {
  const auto found = binaries.by_hash.find(kernel.hash);
  if (found == binaries.by_hash.end()) {
    return "is not in it";
  }
  for (const KernelBinary& binary : found->second) {
    if (std::string fault = FindUnlaunchable(kernel, binary); !fault.empty()) {
      return fault;
    }
  }
  return "";
}

}  // namespace

KernelBinaries ParseKernelBinaries(std::string_view text, const std::string& file) {
  const Json json = ParseJson(text, file);
  const Locator locate = PointerLocator(file);
  RequireFormat(json, "dc-kernels/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(json, root, faults);
  for (const std::string_view key : {"format", "workload", "recorder"}) {
    object.Require(key);
  }
  KernelBinaries binaries;
  binaries.file = file;
  object.Required("architecture", ReadString, binaries.architecture);
  const Json* kernels = object.RequireArray("kernels");
  const Path path = object.At("kernels");
  for (std::size_t i = 0; kernels != nullptr && i < kernels->size(); ++i) {
    ReadBinary((*kernels)[i], Path(path, i), faults, binaries);
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  return binaries;
}

std::string FindUnlaunchable(const Graph& graph, const KernelBinaries& binaries) {
  for (const TritonKernel& kernel : graph.kernels) {
    if (const std::string fault = FindUnlaunchable(kernel, binaries); !fault.empty()) {
      return "kernel " + kernel.name + " " + fault;
    }
  }
  return "";
}

}  // namespace dcsim::exec
