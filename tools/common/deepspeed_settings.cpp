#include "tools/common/deepspeed_settings.h"

#include <algorithm>
#include <array>

#include "tools/common/deepspeed_value.h"

namespace dcsim {
namespace {

/// Of a key that nobody reads: it asks for nothing, or for groups of one rank.
bool IsOff(const Json& value) {
  if (value.is_object() && value.contains("enabled")) {
    return value["enabled"] == false;
  }
  return value.is_null() || value == false || value == 0 || value == 1 || value == Json::object();
}

/// As Hugging Face's Trainer looks for it.
bool IsStage3(const Json& document) {
  const Json::json_pointer stage("/zero_optimization/stage");
  return document.contains(stage) && document[stage] == 3;
}

}  // namespace

std::optional<std::int64_t> RecordedRows(const Graph& graph) {
  if (graph.inputs.empty()) {
    return std::nullopt;
  }
  const auto& shape = graph.value(graph.inputs.front().value).shape;
  return shape.empty() ? std::nullopt : std::optional(shape.front());
}

DType RecordedDType(const Graph& graph) {
  std::map<DType, std::int64_t> elements;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    elements[graph.dtype(ParamId(i))] += graph.numel(ParamId(i));
  }
  const auto most = std::max_element(
      elements.begin(), elements.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == elements.end() ? DType::kFloat32 : most->first;
}

Json RecordedOption(const Graph& graph, const std::string& name) {
  const Json options = Json::parse(graph.notes.options, nullptr, /*allow_exceptions=*/false);
  return options.is_object() ? options.value(name, Json()) : Json();
}

DeepSpeedSettings::DeepSpeedSettings(const Json& document, const DeepSpeedJob& job, Faults& faults)
    : job_(job),
      faults_(faults),
      stage3_(IsStage3(document)) {
  Walk(document, "", "");
}

Json DeepSpeedSettings::Get(std::string_view path) const {
  const auto found = values_.find(path);
  if (found != values_.end()) {
    return found->second;
  }
  const DeepSpeedKey* key = FindDeepSpeedKey(SectionOf(path), LastName(path));
  return key == nullptr || key->fallback.empty() ? Json() : Json::parse(key->fallback);
}

std::string DeepSpeedSettings::Pointer(std::string_view path) const {
  const auto found = pointers_.find(path);
  if (found != pointers_.end()) {
    return found->second;
  }
  const std::string_view section = SectionOf(path);
  return (section.empty() ? std::string() : Pointer(section)) + "/" + std::string(LastName(path));
}

void DeepSpeedSettings::Walk(const Json& object,
                             const std::string& section,
                             const std::string& pointer) {
  for (const auto& [name, value] : object.items()) {
    const std::string own = std::string(pointer).append("/").append(name);
    const DeepSpeedKey* key = FindDeepSpeedKey(section, name);
    if (key == nullptr) {
      TakeUnknown(section, name, value, own);
    } else if (key->meaning == KeyMeaning::kRemoved) {
      faults_.Add(own, "DeepSpeed 0.19.8 refuses this key: " + std::string(key->why));
    } else {
      Take(*key, value, own);
    }
  }
}

void DeepSpeedSettings::TakeUnknown(const std::string& section,
                                    const std::string& name,
                                    const Json& value,
                                    const std::string& pointer) {
  const std::string_view effect = FindMeantEffect(name);
  if (IsStrictSection(section)) {
    faults_.Add(pointer, "DeepSpeed 0.19.8 has no key '" + name + "' here" +
                             NearestDeepSpeedKey(section, name));
  } else if (section.empty() || section == "data_types" || section == "torch_autocast" ||
             section == "optimizer") {
    if (!effect.empty() && !IsOff(value)) {
      faults_.Add(pointer, "DeepSpeed 0.19.8 does not look for this key, and " +
                               std::string(effect) + ": expected none");
      return;
    }
    unknown_.push_back(pointer.substr(1) + NearestDeepSpeedKey(section, name));
  }
}

void DeepSpeedSettings::Take(const DeepSpeedKey& key,
                             const Json& value,
                             const std::string& pointer) {
  if (Has(key.path)) {
    faults_.Add(pointer,
                "the same key as " + Pointer(key.path).substr(1) + ": dc-sim expects one of both");
    return;
  }
  pointers_.insert_or_assign(std::string(key.path), pointer);
  if (value == "auto" && FillAuto(key, pointer)) {
    return;
  }
  if (key.path == "zero_optimization" && value.is_boolean()) {
    Put(key, Json::object(), pointer);
    Put(*FindDeepSpeedKey("zero_optimization", "stage"), value == true ? 1 : 0, pointer);
    return;
  }
  if (pointer == "/bfloat16" && value.is_null()) {
    faults_.Add(pointer, "DeepSpeed expects an object, found null");
    return;
  }
  TakenValue taken = TakeDeepSpeedValue(key, value);
  if (!taken.fault.empty()) {
    const bool unfilled = value == "auto" && key.type != KeyType::kChoice;
    faults_.Add(
        pointer,
        taken.fault + (unfilled ? ", which Hugging Face's Trainer does not fill in here" : ""));
    return;
  }
  const bool section = key.type == KeyType::kStrictSection || key.type == KeyType::kOpenSection;
  Put(key, std::move(taken.value), pointer);
  if (section && value.is_object()) {
    Walk(value, std::string(key.path), pointer);
  }
}

void DeepSpeedSettings::Put(const DeepSpeedKey& key, Json value, const std::string& pointer) {
  values_.insert_or_assign(std::string(key.path), std::move(value));
  pointers_.insert_or_assign(std::string(key.path), pointer);
  keys_.push_back(&key);
}

void DeepSpeedSettings::Fill(const DeepSpeedKey& key,
                             const Json& value,
                             const std::string& pointer) {
  filled_.push_back(pointer.substr(1) + " " + value.dump());
  Put(key, value, pointer);
}

/// transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig, which knows keys by one of
/// their names; and DeepSpeed's own classes, which leave "auto" out.
bool DeepSpeedSettings::FillAuto(const DeepSpeedKey& key, const std::string& pointer) {
  const DType dtype = RecordedDType(job_.graph);
  const std::string_view name = std::string_view(pointer).substr(1);
  if (name == "train_micro_batch_size_per_gpu") {
    Fill(key, RecordedRows(job_.graph).value_or(1), pointer);
  } else if (name == "gradient_accumulation_steps") {
    Fill(key, 1, pointer);
  } else if (name == "train_batch_size") {
    filled_.push_back("train_batch_size by the other two and the ranks");
  } else if (name == "gradient_clipping") {
    Fill(key, 1.0, pointer);
  } else if (name == "bf16/enabled") {
    Fill(key, dtype == DType::kBFloat16, pointer);
  } else if (name == "fp16/enabled") {
    Fill(key, dtype == DType::kFloat16, pointer);
  } else if (name == "zero_optimization/reduce_bucket_size" ||
             (stage3_ && (name == "zero_optimization/stage3_prefetch_bucket_size" ||
                          name == "zero_optimization/stage3_param_persistence_threshold"))) {
    FillFromHiddenSize(key, pointer);
  } else if (name == "optimizer/params/lr" || name == "optimizer/params/betas" ||
             name == "optimizer/params/eps" || name == "optimizer/params/weight_decay") {
    filled_.push_back(std::string(name) + " the caller's argument");
  } else if (IsStrictSection(SectionOf(key.path))) {
    filled_.push_back(std::string(name) + " DeepSpeed's default");
  } else {
    return false;
  }
  return true;
}

void DeepSpeedSettings::FillFromHiddenSize(const DeepSpeedKey& key, const std::string& pointer) {
  const Json hidden = RecordedOption(job_.graph, "hidden_size");
  if (!hidden.is_number_integer() || hidden.get<std::int64_t>() < 1) {
    faults_.Add(pointer,
                "\"auto\" is filled in from the model's hidden size, which this recording does not "
                "hold (those of Hugging Face's models do): write the number");
    return;
  }
  const std::int64_t size = hidden.get<std::int64_t>();
  if (key.path == "zero_optimization.reduce_bucket_size") {
    Fill(key, size * size, pointer);
  } else if (key.path == "zero_optimization.prefetch_bucket_size") {
    Fill(key, static_cast<std::int64_t>(0.9 * static_cast<double>(size * size)), pointer);
  } else {
    Fill(key, 10 * size, pointer);
  }
}

}  // namespace dcsim
