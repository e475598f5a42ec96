#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ir/document.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/deepspeed_keys.h"

namespace dcsim {

/// Rows of a graph's first input, the micro batch of its recording; nothing where it has none.
std::optional<std::int64_t> RecordedRows(const Graph& graph);
/// dtype of most elements of its parameters.
DType RecordedDType(const Graph& graph);
/// An option with which a graph was recorded, or null.
Json RecordedOption(const Graph& graph, const std::string& name);

/// The keys that a file sets, each with the value that DeepSpeed takes it for, by their first names
/// ("zero_optimization.prefetch_bucket_size").
class DeepSpeedSettings {
 public:
  /// Walks over the file. Faults are what DeepSpeed refuses of single keys.
  DeepSpeedSettings(const Json& document, const DeepSpeedJob& job, Faults& faults);

  bool Has(std::string_view path) const { return values_.find(path) != values_.end(); }
  /// The file's value, or DeepSpeed's default.
  Json Get(std::string_view path) const;
  bool IsOn(std::string_view path) const { return Get(path) == true; }
  /// Where the key stands in the file, or would.
  std::string Pointer(std::string_view path) const;

  /// By key, in the order of the file.
  const std::vector<const DeepSpeedKey*>& keys() const { return keys_; }
  /// "auto" and what it became.
  const std::vector<std::string>& filled() const { return filled_; }
  /// Pointers of keys that DeepSpeed does not have and does not look for.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void Walk(const Json& object, const std::string& section, const std::string& pointer);
  void Take(const DeepSpeedKey& key, const Json& value, const std::string& pointer);
  void TakeUnknown(const std::string& section,
                   const std::string& name,
                   const Json& value,
                   const std::string& pointer);
  bool FillAuto(const DeepSpeedKey& key, const std::string& pointer);
  void Fill(const DeepSpeedKey& key, const Json& value, const std::string& pointer);
  void FillFromHiddenSize(const DeepSpeedKey& key, const std::string& pointer);
  void Put(const DeepSpeedKey& key, Json value, const std::string& pointer);

  const DeepSpeedJob& job_;
  Faults& faults_;
  bool stage3_;
  std::map<std::string, Json, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> pointers_;
  std::vector<const DeepSpeedKey*> keys_;
  std::vector<std::string> filled_;
  std::vector<std::string> unknown_;
};

}  // namespace dcsim
