#include "model/ir/document.h"

#include <algorithm>
#include <cmath>

#include "model/base/control_text.h"
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

/// The value if it is a list, else null, after a fault where there is one.
const Json* ListOrFault(const Json* value, const Path& path, Faults& faults) {
  if (value != nullptr && !value->is_array()) {
    AddExpected(*value, "a list", path, faults);
    return nullptr;
  }
  return value;
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

/// "line:column" of a byte offset, both counted from 1.
std::string LineAndColumn(std::string_view text, std::size_t byte) {
  const std::size_t end = std::min(byte, text.size());
  const auto before = text.substr(0, end);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return std::to_string(line) + ":" + std::to_string(end - start + 1);
}

/// The library's message without its own prefix and position: "[…] parse error at …: `message`" or
/// "[…] `message`".
std::string ParserMessage(const std::string& what) {
  const std::size_t colon = what.find(": ");
  const std::size_t prefix = colon == std::string::npos ? what.find("] ") : colon;
  return prefix == std::string::npos ? what : what.substr(prefix + 2);
}

/// Builds the document from the library's events and rejects what would otherwise pass silently:
/// duplicate keys, deep nesting, more values than memory has room for. Json::parse with a callback
/// would do as well, but searches the whole list around every object that ends: its time grows with
/// the square of a list's length.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Json TakeDocument() { return std::move(document_); }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(std::int64_t value) override { return Add(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return Add(value) != nullptr; }
  bool number_float(double value, const std::string&) override { return Add(value) != nullptr; }
  bool string(std::string& value) override {
    RequirePrintable(value);
    return Add(std::move(value)) != nullptr;
  }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override {
    Open(Json::object());
    open_.back()->get_ref<Json::object_t&>().reserve(kUsualKeys);
    return true;
  }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    RequirePrintable(name);
    auto& fields = open_.back()->get_ref<Json::object_t&>();
    const auto [field, is_new] = fields.emplace(name, Json());
    if (!is_new) {
      throw Error(file_ + ": key '" + name + "' stands twice in one object");
    }
    if (fields.size() > kMostKeys) {
      throw Error(file_ + ": an object has more than " + std::to_string(kMostKeys) + " keys");
    }
    field_ = &field->second;
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error(file_ + ":" + LineAndColumn(text_, position == 0 ? 0 : position - 1) +
                ": not valid JSON: " + ParserMessage(error.what()));
  }

 private:
  static constexpr std::size_t kDeepest = 64;
  static constexpr std::size_t kUsualKeys = 8;            // an object that grows copies its keys
  static constexpr std::size_t kMostKeys = 4096;          // duplicates are looked for one by one
  static constexpr std::size_t kMostValues = 10'000'000;  // the graph of an 8B model has 300,000

  /// Texts come back in reports and messages, which a terminal shows.
  void RequirePrintable(const std::string& text) const {
    if (const auto at = FindControlCharacter(text)) {
      throw Error(file_ + ": expected texts without control characters, found one behind '" +
                  text.substr(0, std::min<std::size_t>(*at, 60)) + "'");
    }
  }

  /// Puts a value where the text has come to, and gives its place.
  Json* Add(Json value) {
    if (++values_ > kMostValues) {
      throw Error(file_ + ": holds more than " + std::to_string(kMostValues) + " values");
    }
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *field_ = std::move(value);
    return field_;
  }

  bool Open(Json container) {
    if (open_.size() >= kDeepest) {
      throw Error(file_ + ": nests deeper than " + std::to_string(kDeepest) + " levels");
    }
    open_.push_back(Add(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  Json document_;
  std::vector<Json*> open_;  // the containers around the place that the text has come to
  Json* field_ = nullptr;    // of the innermost object: behind its latest key
  std::size_t values_ = 0;
};

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
  DocumentBuilder builder(text, file);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.TakeDocument();
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
  return ListOrFault(Require(key), At(key), faults_);
}

const Json* ObjectReader::FindArray(std::string_view key) {
  return ListOrFault(Find(key), At(key), faults_);
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
