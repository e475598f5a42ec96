#include "model/ir/document.h"

#include <algorithm>
#include <cmath>

#include "model/base/error.h"
#include "model/base/quantity.h"

namespace dcsim {
namespace {

/// A short quotation of a value for a message.
std::string Quote(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_object() || value.is_array()) {
    return value.is_object() ? "an object" : "a list";
  }
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMost) {
    text = text.substr(0, kMost) + "…";
  }
  return text;
}

void AddExpected(const Json& value, std::string_view expected, const Path& path, Faults& faults) {
  faults.Add(path, "expected " + std::string(expected) + ", found " + Quote(value));
}

template <typename T>
std::optional<T> ReadQuantity(const Json& value,
                              std::optional<T> (*find)(std::string_view),
                              std::string_view expected,
                              const Path& path,
                              Faults& faults) {
  std::optional<T> result;
  if (value.is_string()) {
    result = find(value.get_ref<const std::string&>());
  }
  if (!result) {
    AddExpected(value, expected, path, faults);
  }
  return result;
}

/// Rejects duplicate keys and deep nesting while the library builds the document: both would
/// otherwise pass silently.
class StructureGuard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      DeepEnough(depth);
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      Insert(parsed.get_ref<const std::string&>());
    }
    return true;
  }

 private:
  static constexpr int kDeepest = 64;

  static void DeepEnough(int depth) {
    if (depth >= kDeepest) {  // the root has depth 0
      throw Error("nests deeper than " + std::to_string(kDeepest) + " levels");
    }
  }

  void Insert(const std::string& key) {
    auto& keys = keys_.back();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      throw Error("key '" + key + "' stands twice in one object");
    }
    keys.push_back(key);
    constexpr std::size_t kMostKeys = 4096;
    if (keys.size() > kMostKeys) {
      throw Error("an object has more than " + std::to_string(kMostKeys) + " keys");
    }
  }

  std::vector<std::vector<std::string>> keys_;
};

/// "line:column" of a byte offset, both counted from 1.
std::string LineAndColumn(std::string_view text, std::size_t byte) {
  const std::size_t end = std::min(byte, text.size());
  const auto before = text.substr(0, end);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return std::to_string(line) + ":" + std::to_string(end - start + 1);
}

/// The library's message without its own prefix and position.
std::string ParserMessage(const std::string& what) {
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

}  // namespace

std::string Path::Pointer() const {
  if (parent_ == nullptr) {
    return "";
  }
  const std::string own = is_index_ ? std::to_string(index_) : std::string(key_);
  return parent_->Pointer() + "/" + own;
}

Locator PointerLocator(std::string file) {
  return [file = std::move(file)](const std::string& pointer) {
    return pointer.empty() ? file : file + ": " + pointer;
  };
}

void Faults::Add(const Path& where, std::string_view what) {
  Add(where.Pointer(), what);
}

void Faults::Add(std::string_view pointer, std::string_view what) {
  ++count_;
  if (shown_.size() < kMostShown) {
    shown_.push_back(locate_(std::string(pointer)) + ": " + std::string(what));
  }
}

void Faults::ThrowIfAny() const {
  if (count_ == 0) {
    return;
  }
  std::string text = Join(shown_, "\n");
  if (count_ > shown_.size()) {
    text += "\nand " + std::to_string(count_ - shown_.size()) + " more";
  }
  throw Error(text);
}

Json ParseJson(std::string_view text, const std::string& file) {
  try {
    StructureGuard guard;
    return Json::parse(text.begin(), text.end(),
                       [&guard](int depth, Json::parse_event_t event, Json& parsed) {
                         return guard(depth, event, parsed);
                       });
  } catch (const Json::parse_error& error) {
    throw Error(file + ":" + LineAndColumn(text, error.byte == 0 ? 0 : error.byte - 1) +
                ": not valid JSON: " + ParserMessage(error.what()));
  } catch (const Json::exception& error) {
    throw Error(file + ": not valid JSON: " + ParserMessage(error.what()));
  } catch (const Error& error) {
    throw Error(file + ": " + error.what());
  }
}

std::optional<bool> ReadBool(const Json& value, const Path& path, Faults& faults) {
  if (!value.is_boolean()) {
    AddExpected(value, "true or false", path, faults);
    return std::nullopt;
  }
  return value.get<bool>();
}

std::optional<std::string> ReadString(const Json& value, const Path& path, Faults& faults) {
  if (!value.is_string()) {
    AddExpected(value, "a text", path, faults);
    return std::nullopt;
  }
  return value.get<std::string>();
}

std::optional<double> ReadNumber(const Json& value, const Path& path, Faults& faults) {
  if (!value.is_number()) {
    AddExpected(value, "a number", path, faults);
    return std::nullopt;
  }
  return value.get<double>();
}

std::optional<std::int64_t> ReadInteger(const Json& value, const Path& path, Faults& faults) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits) {
    AddExpected(value, "a whole number", path, faults);
    return std::nullopt;
  }
  return value.get<std::int64_t>();
}

std::optional<Bytes> ReadBytes(const Json& value, const Path& path, Faults& faults) {
  return ReadQuantity<Bytes>(value, FindBytes, "bytes with a unit such as \"80 GiB\"", path,
                             faults);
}

std::optional<Duration> ReadDuration(const Json& value, const Path& path, Faults& faults) {
  return ReadQuantity<Duration>(value, FindDuration, "a time with a unit such as \"4.9 us\"", path,
                                faults);
}

std::optional<BytesPerSecond> ReadBytesPerSecond(const Json& value,
                                                 const Path& path,
                                                 Faults& faults) {
  return ReadQuantity<BytesPerSecond>(value, FindBytesPerSecond,
                                      "a rate with a unit such as \"450 GB/s\"", path, faults);
}

std::optional<std::int64_t> ReadElements(const Json& value, const Path& path, Faults& faults) {
  return ReadQuantity<std::int64_t>(
      value, FindElements, "a count with its unit such as \"500e6 elements\"", path, faults);
}

std::optional<double> ReadFlopsPerSecond(const Json& value, const Path& path, Faults& faults) {
  return ReadQuantity<double>(value, FindFlopsPerSecond,
                              "a rate with a unit such as \"989 TFLOP/s\"", path, faults);
}

std::optional<std::size_t> ReadChoice(const Json& value,
                                      std::span<const std::string_view> names,
                                      const Path& path,
                                      Faults& faults) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) {
      return static_cast<std::size_t>(found - names.begin());
    }
    faults.Add(path, "expected " + JoinAlternatives(names) + ", found '" + text + "'" +
                         DidYouMean(text, names));
    return std::nullopt;
  }
  AddExpected(value, JoinAlternatives(names), path, faults);
  return std::nullopt;
}

ObjectReader::ObjectReader(const Json& value, const Path& path, Faults& faults)
    : value_(value),
      path_(path),
      faults_(faults),
      valid_(value.is_object()) {
  if (!valid_) {
    AddExpected(value, "an object with keys", path, faults);
  }
}

const Json* ObjectReader::Find(std::string_view key) {
  known_.push_back(key);
  if (!valid_) {
    return nullptr;
  }
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

const Json* ObjectReader::Require(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr && valid_) {
    faults_.Add(path_, "key '" + std::string(key) + "' is missing");
  }
  return value;
}

const Json* ObjectReader::RequireArray(std::string_view key) {
  const Json* value = Require(key);
  if (value != nullptr && !value->is_array()) {
    AddExpected(*value, "a list", At(key), faults_);
    return nullptr;
  }
  return value;
}

void ObjectReader::RejectUnknown() {
  if (!valid_) {
    return;
  }
  for (const auto& [key, unused] : value_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      faults_.Add(Path(path_, key), "unknown key '" + key + "'" + DidYouMean(key, known_));
    }
  }
}

void RequireFormat(const Json& document, std::string_view expected, const Locator& locate) {
  const std::string wanted =
      "expected a document with \"format\": \"" + std::string(expected) + "\"";
  if (!document.is_object()) {
    throw Error(locate("") + ": " + wanted + ", found " + Quote(document));
  }
  const auto format = document.find("format");
  if (format == document.end()) {
    throw Error(locate("") + ": " + wanted + ", found none");
  }
  if (*format != Json(expected)) {
    throw Error(locate("/format") + ": " + wanted + ", found " + Quote(*format));
  }
}

}  // namespace dcsim
