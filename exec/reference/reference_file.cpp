#include "exec/reference/reference_file.h"

#include <charconv>

#include "model/ir/document.h"

namespace dcsim::exec {
namespace {

int ReadCount(ObjectReader& object, std::string_view key) {
  std::int64_t count = 0;
  if (object.Required(key, ReadInteger, count) && (count < 1 || count > 1'000'000)) {
    object.faults().Add(object.At(key), "expected a count from 1 to 1000000");
    return 1;
  }
  return static_cast<int>(count);
}

std::uint64_t ReadHash(ObjectReader& object) {
  std::string digits;
  std::uint64_t hash = 0;
  if (object.Required("hash", ReadString, digits)) {
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      object.faults().Add(object.At("hash"), "expected 16 hexadecimal digits");
    }
  }
  return hash;
}

std::vector<double> ReadNumbers(const Json& list, const Path& path, Faults& faults) {
  std::vector<double> numbers;
  if (!list.is_array()) {
    faults.Add(path, "expected a list of numbers");
    return numbers;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    numbers.push_back(ReadNumber(list[i], Path(path, i), faults).value_or(0));
  }
  return numbers;
}

ReferenceGradient ReadGradient(const Json& value,
                               const Graph& graph,
                               const Path& path,
                               Faults& faults) {
  ObjectReader object(value, path, faults);
  ReferenceGradient gradient;
  std::int64_t param = 0;
  if (object.Required("param", ReadInteger, param) &&
      (param < 0 || param >= static_cast<std::int64_t>(graph.params.size()))) {
    faults.Add(object.At("param"), "expected an index into the graph's params");
    param = 0;
  } else if (param < static_cast<std::int64_t>(graph.params.size()) &&
             !graph.params[static_cast<std::size_t>(param)].requires_grad) {
    faults.Add(object.At("param"),
               graph.params[static_cast<std::size_t>(param)].name + " has no gradient");
  }
  gradient.param = ParamId(static_cast<std::size_t>(param));
  object.Require("name");
  object.Required("norm", ReadNumber, gradient.fingerprint.norm);
  gradient.fingerprint.hash = ReadHash(object);
  if (const Json* list = object.RequireArray("projections")) {
    const auto numbers = ReadNumbers(*list, object.At("projections"), faults);
    if (numbers.size() != kProjections) {
      faults.Add(object.At("projections"), "expected 16 numbers");
    } else {
      std::copy(numbers.begin(), numbers.end(), gradient.fingerprint.projections.begin());
    }
  }
  object.RejectUnknown();
  return gradient;
}

/// [rank][micro-step], as many of each as the reference states.
std::vector<std::vector<double>> ReadLosses(const Json& list,
                                            const Reference& reference,
                                            const Path& path,
                                            Faults& faults) {
  std::vector<std::vector<double>> losses;
  if (list.size() != static_cast<std::size_t>(reference.ranks)) {
    faults.Add(path, "expected " + std::to_string(reference.ranks) + " lists, one a rank");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path here(path, i);
    losses.push_back(ReadNumbers(list[i], here, faults));
    if (list[i].is_array() && list[i].size() != static_cast<std::size_t>(reference.accumulation)) {
      faults.Add(here, "expected " + std::to_string(reference.accumulation) +
                           " numbers, one a micro-step");
    }
  }
  return losses;
}

ReferenceStep ReadStep(const Json& value,
                       const Graph& graph,
                       const Reference& reference,
                       const Path& path,
                       Faults& faults) {
  ObjectReader object(value, path, faults);
  ReferenceStep step;
  object.Require("loss");
  if (const Json* losses = object.RequireArray("losses")) {
    step.losses = ReadLosses(*losses, reference, object.At("losses"), faults);
  }
  if (const Json* gradients = object.RequireArray("gradients")) {
    const Path here = object.At("gradients");
    for (std::size_t i = 0; i < gradients->size(); ++i) {
      step.gradients.push_back(ReadGradient((*gradients)[i], graph, Path(here, i), faults));
    }
  }
  object.RejectUnknown();
  return step;
}

}  // namespace

Reference ParseReference(std::string_view text, const Graph& graph, const std::string& file) {
  const Json json = ParseJson(text, file);
  const Locator locate = PointerLocator(file);
  RequireFormat(json, "dc-reference/1", locate);
  Faults faults(locate);
  const Path root;
  ObjectReader object(json, root, faults);
  for (const std::string_view key : {"format", "workload", "recorder", "optimizer"}) {
    object.Require(key);
  }
  Reference reference;
  std::string hash;
  if (object.Required("graph", ReadString, hash) && hash != HexDigits(graph.hash)) {
    faults.Add(object.At("graph"), "the reference is of graph " + hash + ", the workload's is " +
                                       HexDigits(graph.hash) + "; make it again");
  }
  std::int64_t seed = 0;
  object.Required("seed", ReadInteger, seed);
  reference.seed = static_cast<std::uint64_t>(seed);
  object.Required("device", ReadString, reference.device);
  reference.ranks = ReadCount(object, "ranks");
  reference.accumulation = ReadCount(object, "accumulation");
  if (const Json* steps = object.RequireArray("steps")) {
    const Path here = object.At("steps");
    for (std::size_t i = 0; i < steps->size(); ++i) {
      reference.steps.push_back(ReadStep((*steps)[i], graph, reference, Path(here, i), faults));
    }
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  return reference;
}

}  // namespace dcsim::exec
