#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/text.h"
#include "model/base/units.h"

namespace dcsim {

using Json = nlohmann::ordered_json;

/// Where a field stands inside a document, as a chain of keys and indices that lives on the stack
/// of the reading functions. Text is made only when a fault needs it.
class Path {
 public:
  Path() = default;
  Path(const Path& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Path(const Path& parent, std::size_t index) : parent_(&parent), index_(index), is_index_(true) {}

  /// JSON pointer, "/graphs/0/ops/17/args"; the root is "".
  std::string Pointer() const;

 private:
  const Path* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
  bool is_index_ = false;
};

/// Turns a JSON pointer into what a person looks for: "graph.json: /graphs/0" or, where marks are
/// kept, "plan.yaml:7:3".
using Locator = std::function<std::string(const std::string& pointer)>;

/// "`file`: `pointer`", the locator of documents without line marks.
Locator PointerLocator(std::string file);

/// Everything wrong with one document. Readers go on after a fault, so that all are reported at
/// once.
class Faults {
 public:
  explicit Faults(Locator locate) : locate_(std::move(locate)) {}

  void Add(const Path& where, std::string_view what);
  void Add(std::string_view pointer, std::string_view what);
  bool empty() const { return count_ == 0; }

  /// Throws Error with up to 20 faults, one a line, and the number of those left out.
  void ThrowIfAny() const;

 private:
  static constexpr std::size_t kMostShown = 20;
  Locator locate_;
  std::vector<std::string> shown_;
  std::size_t count_ = 0;
};

/// Parses JSON text. Throws Error "`file`:line:column: …" where it is no JSON, and "`file`: …" when
/// it holds a key twice, nests deeper than 64 levels or has more than 10,000,000 values.
Json ParseJson(std::string_view text, const std::string& file);

/// One field, typed: nothing, and a fault that says what was expected, when the value has another
/// type or range.
std::optional<bool> ReadBool(const Json& value, const Path& path, Faults& faults);
std::optional<std::string> ReadString(const Json& value, const Path& path, Faults& faults);
std::optional<double> ReadNumber(const Json& value, const Path& path, Faults& faults);
std::optional<std::int64_t> ReadInteger(const Json& value, const Path& path, Faults& faults);
std::optional<Bytes> ReadBytes(const Json& value, const Path& path, Faults& faults);
std::optional<Duration> ReadDuration(const Json& value, const Path& path, Faults& faults);
std::optional<BytesPerSecond> ReadBytesPerSecond(const Json& value,
                                                 const Path& path,
                                                 Faults& faults);
std::optional<std::int64_t> ReadElements(const Json& value, const Path& path, Faults& faults);
std::optional<double> ReadFlopsPerSecond(const Json& value, const Path& path, Faults& faults);

/// A choice among names; gives the index, and a fault with the nearest name otherwise.
std::optional<std::size_t> ReadChoice(const Json& value,
                                      std::span<const std::string_view> names,
                                      const Path& path,
                                      Faults& faults);

/// The fields of one JSON object. Construct it, read each known field once, and call
/// `RejectUnknown` last: whatever was not read is a fault that names the nearest known key.
class ObjectReader {
 public:
  ObjectReader(const Json& value, const Path& path, Faults& faults);

  /// The field, or null after a fault that it is missing.
  const Json* Require(std::string_view key);
  /// The field, or null.
  const Json* Find(std::string_view key);
  /// An array field's elements, or null after a fault that it is missing or no array.
  const Json* RequireArray(std::string_view key);
  /// The same of a field that may be missing.
  const Json* FindArray(std::string_view key);

  Path At(std::string_view key) const { return Path(path_, key); }
  Faults& faults() { return faults_; }
  bool valid() const { return valid_; }

  /// `target` = the field read by `read` (one of the functions above). A missing optional field
  /// leaves `target` as it is, a missing required one is a fault. True when `target` was set.
  template <typename T, typename Reader>
  bool Required(std::string_view key, Reader read, T& target) {
    const Json* value = Require(key);
    return value != nullptr && Assign(*value, key, read, target);
  }
  template <typename T, typename Reader>
  bool Optional(std::string_view key, Reader read, T& target) {
    const Json* value = Find(key);
    return value != nullptr && Assign(*value, key, read, target);
  }
  /// The fields of an optional object, read by `read`; any that it leaves is a fault.
  template <typename Read>
  bool OptionalObject(std::string_view key, Read read) {
    const Json* value = Find(key);
    if (value == nullptr) {
      return false;
    }
    const Path path = At(key);
    ObjectReader fields(*value, path, faults_);
    read(fields);
    fields.RejectUnknown();
    return true;
  }
  template <typename Enum>
  bool OptionalChoice(std::string_view key, std::span<const std::string_view> names, Enum& target) {
    const Json* value = Find(key);
    if (value == nullptr) {
      return false;
    }
    const auto index = ReadChoice(*value, names, At(key), faults_);
    if (index) {
      target = static_cast<Enum>(*index);
    }
    return index.has_value();
  }

  void RejectUnknown();

 private:
  template <typename T, typename Reader>
  bool Assign(const Json& value, std::string_view key, Reader read, T& target) {
    auto result = read(value, At(key), faults_);
    if (!result) {
      return false;
    }
    target = static_cast<T>(*std::move(result));
    return true;
  }

  const Json& value_;
  const Path& path_;
  Faults& faults_;
  bool valid_;
  std::vector<std::string_view> known_;
};

/// Checks that the document is an object whose "format" is `expected` ("dc-graph/1"). Throws Error
/// otherwise, naming what it found; nothing else of another format is worth reading.
void RequireFormat(const Json& document, std::string_view expected, const Locator& locate);

}  // namespace dcsim
