#include "model/graph/borrowed_profile.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

/// An operator and its tensors' dtypes, shapes and strides; what lies between them is left out.
std::string Describe(const Graph& graph, OpId id) {
  std::string text(graph.target(id));
  const auto add = [&](ValueId value) {
    text += '|';
    if (value.is_none()) {
      return;
    }
    const Value& tensor = graph.value(value);
    text += DTypeName(tensor.dtype);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      text += ' ' + std::to_string(tensor.shape[i]) + ':' +
              std::to_string(tensor.shape[i] == 1 ? 0 : tensor.strides[i]);
    }
  };
  for (const ValueId input : graph.op(id).inputs) {
    add(input);
  }
  text += '>';
  for (const ValueId output : graph.op(id).outputs) {
    add(output);
  }
  return text;
}

Duration SumOf(const Profile& profile) {
  Duration sum;
  for (const OpProfile& op : profile.ops) {
    sum += op.device_time;
  }
  return sum;
}

}  // namespace

Profile BorrowProfile(ProfiledGraph measured, const Graph& compiled) {
  const auto from = std::make_shared<const ProfiledGraph>(std::move(measured));
  const Profile& profile = from->profile;
  std::map<std::string, const OpProfile*> known;
  for (const OpProfile& op : profile.ops) {
    known.emplace(Describe(from->graph, op.op), &op);
  }
  Profile borrowed = profile;
  borrowed.graph_hash = compiled.hash;
  borrowed.ops.clear();
  borrowed.side_by_side.clear();
  borrowed.borrowed_from = from;
  const StepFacts facts = AnalyseStep(compiled);
  for (std::size_t i = 0; i < compiled.ops.size(); ++i) {
    const OpId id(i);
    const auto found = compiled.op(id).launch || facts.is_view[i]
                           ? known.end()
                           : known.find(Describe(compiled, id));
    if (found != known.end()) {
      borrowed.ops.push_back(*found->second);
      borrowed.ops.back().op = id;
    }
  }
  // The share of the step in the sum of its ops tells what recording kernels costs.
  const Duration all = SumOf(profile);
  if (all > Duration()) {
    const double share = profile.step_time.seconds() / all.seconds();
    borrowed.step_time =
        Duration::FromNs(static_cast<std::int64_t>(SumOf(borrowed).seconds() * share * 1e9));
  }
  return borrowed;
}

}  // namespace dcsim
