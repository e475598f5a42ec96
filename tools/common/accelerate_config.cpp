#include "tools/common/accelerate_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/file.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSection = "deepspeed_config";

/// What becomes of a key.
enum class Use : std::uint8_t { kRead, kNoEffect, kRefused };

struct AccelerateKey {
  std::string_view name;
  Use use;
  std::string_view why;  // of a key that is refused
};

/// Keys of ClusterConfig (accelerate/commands/config/config_args.py). A refused one may be empty,
/// false or "no".
constexpr std::array<AccelerateKey, 33> kKeys = {{
    {"compute_environment", Use::kRead, ""},
    {"distributed_type", Use::kRead, ""},
    {"mixed_precision", Use::kRead, ""},
    {"num_processes", Use::kRead, ""},
    {"deepspeed_config", Use::kRead, ""},
    {"use_cpu", Use::kRefused, "steps run on GPUs here"},
    {"fp16", Use::kRefused, "accelerate reads mixed_precision: fp16 in its place"},
    {"debug", Use::kNoEffect, ""},
    {"num_machines", Use::kNoEffect, ""},
    {"machine_rank", Use::kNoEffect, ""},
    {"gpu_ids", Use::kNoEffect, ""},
    {"main_process_ip", Use::kNoEffect, ""},
    {"main_process_port", Use::kNoEffect, ""},
    {"rdzv_backend", Use::kNoEffect, ""},
    {"same_network", Use::kNoEffect, ""},
    {"main_training_function", Use::kNoEffect, ""},
    {"enable_cpu_affinity", Use::kNoEffect, ""},
    {"downcast_bf16", Use::kNoEffect, ""},
    {"command_file", Use::kNoEffect, ""},
    {"commands", Use::kNoEffect, ""},
    {"tpu_name", Use::kNoEffect, ""},
    {"tpu_zone", Use::kNoEffect, ""},
    {"tpu_use_cluster", Use::kNoEffect, ""},
    {"tpu_use_sudo", Use::kNoEffect, ""},
    {"tpu_vm", Use::kNoEffect, ""},
    {"tpu_env", Use::kNoEffect, ""},
    {"fsdp_config", Use::kNoEffect, ""},
    {"megatron_lm_config", Use::kNoEffect, ""},
    {"mpirun_config", Use::kNoEffect, ""},
    {"fp8_config", Use::kRefused, "no plan computes in fp8"},
    {"parallelism_config", Use::kRefused, "plans are data-parallel"},
    {"dynamo_config", Use::kRefused,
     "torch.compile fuses kernels; a DeepSpeed file with compile.deepcompile has a plan"},
    {"dynamo_backend", Use::kRefused,
     "torch.compile fuses kernels; a DeepSpeed file with compile.deepcompile has a plan"},
}};

/// Keys of the section, and where DeepSpeed has them. Those without a place are not in its file.
struct SectionKey {
  std::string_view name;
  Use use;
  std::string_view pointer;
  std::string_view why;
};

constexpr std::array<SectionKey, 15> kSectionKeys = {{
    {"deepspeed_config_file", Use::kRead, "", ""},
    {"zero_stage", Use::kRead, "/zero_optimization/stage", ""},
    {"gradient_accumulation_steps", Use::kRead, "/gradient_accumulation_steps", ""},
    {"gradient_clipping", Use::kRead, "/gradient_clipping", ""},
    {"offload_optimizer_device", Use::kRead, "/zero_optimization/offload_optimizer/device", ""},
    {"offload_param_device", Use::kRead, "/zero_optimization/offload_param/device", ""},
    {"offload_optimizer_nvme_path", Use::kNoEffect, "", ""},
    {"offload_param_nvme_path", Use::kNoEffect, "", ""},
    {"zero3_save_16bit_model", Use::kRead,
     "/zero_optimization/stage3_gather_16bit_weights_on_model_save", ""},
    {"zero3_init_flag", Use::kNoEffect, "", ""},
    {"deepspeed_hostfile", Use::kNoEffect, "", ""},
    {"deepspeed_exclusion_filter", Use::kNoEffect, "", ""},
    {"deepspeed_inclusion_filter", Use::kNoEffect, "", ""},
    {"deepspeed_multinode_launcher", Use::kNoEffect, "", ""},
    {"deepspeed_moe_layer_cls_names", Use::kRefused, "",
     "gathers a layer of experts as one (set_z3_leaf_modules)"},
}};

/// What accelerate refuses beside deepspeed_config_file (DeepSpeedPlugin._deepspeed_config_checks).
constexpr std::array<std::string_view, 8> kNotBesideFile = {
    "gradient_accumulation_steps", "gradient_clipping",     "zero_stage",
    "offload_optimizer_device",    "offload_param_device",  "offload_param_nvme_path",
    "offload_optimizer_nvme_path", "zero3_save_16bit_model"};

template <typename Key, std::size_t Size>
const Key* FindKey(const std::array<Key, Size>& keys, std::string_view name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

template <typename Key, std::size_t Size>
std::string Nearest(const std::array<Key, Size>& keys, std::string_view name) {
  std::vector<std::string_view> names(keys.size());
  std::transform(keys.begin(), keys.end(), names.begin(), [](const Key& key) { return key.name; });
  return DidYouMean(name, names);
}

/// It asks for nothing.
bool IsOff(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  return value.is_null() || value == false || value == Json::object() || text == "no" ||
         text == "NO" ||
         (value.is_object() && value.size() == 1 && value.contains("dynamo_backend") &&
          IsOff(value["dynamo_backend"]));
}

class AccelerateReader {
 public:
  AccelerateReader(const YamlDocument& document, const std::string& path)
      : document_(document),
        locate_(document.locator()),
        path_(path),
        faults_(locate_) {}

  AccelerateConfig Read() {
    CheckKeys();
    ReadLaunch();
    const Json section = document_.json().value(std::string(kSection), Json());
    if (!section.is_null() && !section.is_object()) {
      faults_.Add("/" + std::string(kSection), "expected an object");
    }
    faults_.ThrowIfAny();
    TakeSection(section.is_null() ? Json::object() : section);
    TakePrecision();
    faults_.ThrowIfAny();
    if (!no_effect_.empty()) {
      config_.notes.push_back("no effect on this step's time and memory: " +
                              Join(no_effect_, ", "));
    }
    return std::move(config_);
  }

 private:
  void CheckKeys() {
    for (const auto& [name, value] : document_.json().items()) {
      const AccelerateKey* key = FindKey(kKeys, name);
      if (key == nullptr) {
        faults_.Add("/" + name, "accelerate has no key '" + name + "'" + Nearest(kKeys, name));
      } else if (key->use == Use::kRefused && !IsOff(value)) {
        faults_.Add("/" + name, "not modelled: " + std::string(key->why));
      } else if (key->use == Use::kNoEffect) {
        no_effect_.push_back(name);
      }
    }
  }

  void ReadLaunch() {
    const Json& json = document_.json();
    const Json type = json.value("distributed_type", Json());
    if (type != "DEEPSPEED") {
      faults_.Add("/distributed_type", "not modelled: expected DEEPSPEED, found " + type.dump());
    }
    if (json.value("compute_environment", Json("LOCAL_MACHINE")) != "LOCAL_MACHINE") {
      faults_.Add("/compute_environment", "not modelled: expected LOCAL_MACHINE, found " +
                                              json["compute_environment"].dump());
    }
    const Json processes = json.value("num_processes", Json(-1));
    constexpr std::int64_t kMost = 1'000'000;
    if (!processes.is_number_integer() || processes < -1 || processes == 0 || processes > kMost) {
      faults_.Add("/num_processes",
                  "expected a whole number of at least 1, found " + processes.dump());
    } else if (processes > 0) {
      config_.processes = processes.get<int>();
      config_.processes_place = locate_("/num_processes");
    }
  }

  void TakeSection(const Json& section) {
    const Json file = section.value("deepspeed_config_file", Json());
    const bool has_file = file.is_string() && file != "none";
    if (!file.is_null() && !file.is_string()) {
      faults_.Add(Below("deepspeed_config_file"), "expected the path of a file");
    }
    if (has_file) {
      TakeFile(file.get<std::string>());
    } else {
      MakeOwn(section);
    }
    for (const auto& [name, value] : section.items()) {
      const SectionKey* key = FindKey(kSectionKeys, name);
      if (key == nullptr) {
        config_.notes.push_back("no key that accelerate looks for: " + std::string(kSection) + "/" +
                                name + Nearest(kSectionKeys, name));
      } else if (has_file && std::find(kNotBesideFile.begin(), kNotBesideFile.end(), name) !=
                                 kNotBesideFile.end()) {
        faults_.Add(Below(name),
                    "accelerate refuses it beside deepspeed_config_file: set it there");
      } else if (key->use == Use::kRefused && !value.is_null()) {
        faults_.Add(Below(name), "not modelled: " + std::string(key->why));
      } else if (key->use == Use::kNoEffect) {
        no_effect_.push_back(std::string(kSection) + "/" + name);
      }
    }
  }

  /// The DeepSpeed file, in which accelerate adds what is missing.
  void TakeFile(const std::string& name) {
    const fs::path beside = fs::path(path_).parent_path() / name;
    const std::string file =
        !FileExists(name) && FileExists(beside.string()) ? beside.string() : name;
    if (!FileExists(file)) {
      faults_.Add(Below("deepspeed_config_file"), "no such file " + file);
      return;
    }
    config_.deepspeed = LoadYaml(file, "DeepSpeed file");
    Json& json = config_.deepspeed.json();
    if (!json.is_object() || !json.contains("zero_optimization")) {
      faults_.Add(Below("deepspeed_config_file"),
                  file + " has no zero_optimization, without which accelerate refuses it");
      return;
    }
    for (const char* key : {"bf16", "fp16"}) {
      const Json precision = json.value(key, Json());
      precision_[key] = precision.is_object() ? precision.value("enabled", Json(false)) : Json();
    }
    if (!json.contains("gradient_accumulation_steps")) {
      Put("/gradient_accumulation_steps", 1, Below("deepspeed_config_file"));
    }
  }

  /// What DeepSpeedPlugin makes where no file is named.
  void MakeOwn(const Json& section) {
    const std::string root = "/" + std::string(kSection);
    config_.deepspeed = YamlDocument(Json::object(), {{"", locate_(root)}});
    Put("/train_micro_batch_size_per_gpu", "auto", root);
    Put("/gradient_accumulation_steps", "auto", root);
    Put("/gradient_clipping", "auto", root);
    Put("/zero_optimization", Json::object(), root);
    Put("/zero_optimization/stage", 2, root);
    for (const SectionKey& key : kSectionKeys) {
      const auto given = section.find(std::string(key.name));
      if (key.pointer.empty() || given == section.end() || given->is_null()) {
        continue;
      }
      const std::string pointer(key.pointer);
      const std::string above = pointer.substr(0, pointer.rfind('/'));
      if (!above.empty() && !config_.deepspeed.json().contains(Json::json_pointer(above))) {
        Put(above, Json::object(), Below(key.name));
      }
      Put(pointer, *given, Below(key.name));
    }
  }

  /// mixed_precision, where the DeepSpeed file leaves it open or is not there.
  void TakePrecision() {
    const Json given = document_.json().value("mixed_precision", Json());
    std::string name = "no";
    if (!given.is_null() && given != false) {
      name = given.is_string() ? given.get<std::string>() : given.dump();
    }
    if (name != "no" && name != "fp16" && name != "bf16") {
      faults_.Add(
          "/mixed_precision",
          (name == "fp8" ? "not modelled: no plan computes in fp8; expected " : "expected ") +
              std::string("no, fp16 or bf16, found ") + name);
      return;
    }
    if (!config_.deepspeed.json().is_object()) {
      return;
    }
    for (const std::string type : {"bf16", "fp16"}) {
      const bool on = name == type;
      const auto own = precision_.find(type);
      const bool open = own == precision_.end() || own->second.is_null();
      if (open && on) {
        Put("/" + type, Json{{"enabled", true}}, "/mixed_precision");
      } else if (!open && own->second == "auto") {
        Put("/" + type + "/enabled", on, "/mixed_precision");
      } else if (!open && own->second == true && !on && name != "no") {
        faults_.Add("/mixed_precision", std::string(name)
                                            .append(" contradicts ")
                                            .append(type)
                                            .append(" of the DeepSpeed file"));
      }
    }
  }

  void Put(const std::string& pointer, const Json& value, const std::string& from) {
    config_.deepspeed.Set(pointer, value, locate_(from));
  }

  static std::string Below(std::string_view name) {
    return "/" + std::string(kSection) + "/" + std::string(name);
  }

  const YamlDocument& document_;
  Locator locate_;
  const std::string& path_;
  Faults faults_;
  AccelerateConfig config_;
  std::map<std::string, Json> precision_;  // "enabled" of the DeepSpeed file's
  std::vector<std::string> no_effect_;
};

}  // namespace

bool IsAccelerateConfig(const Json& document) {
  return document.is_object() && !document.contains("format") &&
         (document.contains("distributed_type") || document.contains(kSection));
}

AccelerateConfig ReadAccelerateConfig(const YamlDocument& document, const std::string& path) {
  return AccelerateReader(document, path).Read();
}

}  // namespace dcsim
