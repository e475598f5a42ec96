#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/yaml_document.h"

namespace dcsim {

/// True when a document is a configuration of Hugging Face's accelerate: an object without "format"
/// that has distributed_type or deepspeed_config.
bool IsAccelerateConfig(const Json& document);

/// A configuration of accelerate as the DeepSpeed configuration that it makes.
struct AccelerateConfig {
  YamlDocument deepspeed;          // keys have their places in accelerate's file, or in the
                                   // DeepSpeed file that it names
  std::optional<int> processes;    // num_processes
  std::string processes_place;     // of that key
  std::vector<std::string> notes;  // what of it has no effect, one sentence each
};

/// Reads accelerate's YAML as accelerate 1.15 does (docs/guide/deepspeed-config.md).
///
///   path   of its file. A DeepSpeed file that it names is looked for from the working folder, as
///          accelerate does, then beside it
///
/// Throws Error with every fault: keys that accelerate does not know, keys beside a DeepSpeed file
/// that accelerate refuses there, and what changes a step in a way that no plan says.
AccelerateConfig ReadAccelerateConfig(const YamlDocument& document, const std::string& path);

}  // namespace dcsim
