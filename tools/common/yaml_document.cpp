#include "tools/common/yaml_document.h"

#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "model/base/control_text.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/utf8.h"

namespace dcsim {
namespace {

// The plan of an 8B model, every decision made, has 86 kB; yaml-cpp takes 1 s and 300 MB a MiB.
constexpr std::size_t kLargestText = std::size_t{2} << 20;
constexpr std::size_t kMostNodes = 1'000'000;  // anchors can multiply them
constexpr std::size_t kMostPlaceBytes = std::size_t{64} << 20;
constexpr std::size_t kMostKeys = 4096;  // of one map: duplicates are looked for one by one
constexpr int kDeepest = 64;

std::string PlaceOf(const std::string& file, const YAML::Mark& mark) {
  if (mark.is_null()) {
    return file;
  }
  return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

/// "500e6" is a number in YAML 1.2, "1_000" and "0x10" are texts here: one way to write a number.
Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null") {
    return nullptr;
  }
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (const auto integer = FindInteger(text)) {
    return *integer < 0 ? Json(*integer) : Json(static_cast<std::uint64_t>(*integer));
  }
  if (const auto number = FindNumber(text)) {
    return *number;
  }
  return text;
}

class Converter {
 public:
  Converter(std::string file, std::map<std::string, std::string>& places)
      : file_(std::move(file)),
        places_(places) {}

  Json Convert(const YAML::Node& node, const std::string& pointer, int depth) {
    const std::string place = PlaceOf(file_, node.Mark());
    place_bytes_ += pointer.size() + place.size();
    if (depth > kDeepest || ++nodes_ > kMostNodes || place_bytes_ > kMostPlaceBytes) {
      throw Error(place + ": nests too deep or has too many fields");
    }
    RejectTag(node, place);
    places_.emplace(pointer, place);
    switch (node.Type()) {
      case YAML::NodeType::Map:
        return ConvertMap(node, pointer, depth);
      case YAML::NodeType::Sequence:
        return ConvertList(node, pointer, depth);
      case YAML::NodeType::Scalar:
        return ConvertScalar(node);
      default:
        return nullptr;
    }
  }

 private:
  static std::string Below(std::string pointer, const std::string& key) {
    return pointer.append("/").append(key);
  }

  static void CheckKey(const Json& object, const std::string& key, const std::string& place) {
    if (object.contains(key)) {
      throw Error(place + ": key '" + key + "' stands twice");
    }
    if (object.size() >= kMostKeys) {
      throw Error(place + ": a map with more than " + std::to_string(kMostKeys) + " keys");
    }
  }

  Json ConvertMap(const YAML::Node& node, const std::string& pointer, int depth) {
    Json object = Json::object();
    for (const auto& entry : node) {
      const std::string place = PlaceOf(file_, entry.first.Mark());
      if (!entry.first.IsScalar()) {
        throw Error(place + ": expected a name as key");
      }
      const std::string& key = entry.first.Scalar();
      RequireText(key, place);
      const std::string own = Below(pointer, key);
      CheckKey(object, key, place);
      Json value = Convert(entry.second, own, depth + 1);
      places_[own] = place;  // of the key: where a person looks
      object[key] = std::move(value);
    }
    return object;
  }

  Json ConvertList(const YAML::Node& node, const std::string& pointer, int depth) {
    Json list = Json::array();
    for (std::size_t i = 0; i < node.size(); ++i) {
      list.push_back(Convert(node[i], Below(pointer, std::to_string(i)), depth + 1));
    }
    return list;
  }

  /// yaml-cpp's tag of a plain node is "?" or empty, of a quoted scalar "!".
  static void RejectTag(const YAML::Node& node, const std::string& place) {
    const std::string& tag = node.Tag();
    if (tag != "?" && tag != "!" && !tag.empty()) {
      throw Error(place + ": tags such as '" + tag + "' are not supported");
    }
  }

  /// Escapes such as "\\x85" become bytes that are no character (yaml-cpp 0.7.0).
  static void RequireText(const std::string& text, const std::string& place) {
    if (FindInvalidUtf8(text)) {
      throw Error(place + ": not UTF-8 once its escapes are read");
    }
    if (FindControlCharacter(text)) {
      throw Error(place + ": expected a text without control characters");
    }
  }

  Json ConvertScalar(const YAML::Node& node) const {
    RequireText(node.Scalar(), PlaceOf(file_, node.Mark()));
    return node.Tag() == "!" ? Json(node.Scalar()) : PlainScalar(node.Scalar());
  }

  std::string file_;
  std::map<std::string, std::string>& places_;
  std::size_t nodes_ = 0;
  std::size_t place_bytes_ = 0;
};

/// Notes where documents begin, and nothing else.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { last_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&,
                const std::string&,
                YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&,
                       const std::string&,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&,
                  const std::string&,
                  YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  const YAML::Mark& last() const { return last_; }

 private:
  YAML::Mark last_;
};

/// YAML::Load reads the first document and is silent about what follows it; YAML::LoadAll never
/// ends on some texts (yaml-cpp 0.7.0).
void RejectSecondDocument(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (parser.HandleNextDocument(starts) && parser.HandleNextDocument(starts)) {
    throw Error(PlaceOf(file, starts.last()) +
                ": expected one YAML document, found more behind it");
  }
}

}  // namespace

YamlDocument YamlDocument::Parse(std::string_view text, const std::string& file) {
  if (text.size() > kLargestText) {
    throw Error(file + ": larger than " +
                FormatBytes(Bytes(static_cast<std::int64_t>(kLargestText))));
  }
  if (const auto byte = FindInvalidUtf8(text)) {
    throw Error(file + ": not UTF-8 at byte " + std::to_string(*byte));
  }
  YamlDocument document;
  try {
    const std::string whole(text);
    RejectSecondDocument(whole, file);
    document.json_ = Converter(file, document.places_).Convert(YAML::Load(whole), "", 0);
  } catch (const YAML::Exception& error) {
    throw Error(PlaceOf(file, error.mark) + ": not valid YAML: " + error.msg);
  }
  return document;
}

Locator YamlDocument::locator() const {
  return [places = places_](const std::string& pointer) {
    std::string known = pointer;
    auto found = places.find(known);
    while (found == places.end() && !known.empty()) {
      known.resize(known.rfind('/'));
      found = places.find(known);
    }
    const std::string place = found == places.end() ? "" : found->second;
    const std::string field = pointer.empty() ? "" : ": " + pointer.substr(1);
    return place + field;
  };
}

void YamlDocument::Set(const std::string& pointer, Json value, const std::string& where) {
  Json* object = &json_;
  std::size_t start = 1;
  for (std::size_t end = pointer.find('/', start); end != std::string::npos;
       start = end + 1, end = pointer.find('/', start)) {
    const std::string key = pointer.substr(start, end - start);
    object = object->is_object() && object->contains(key) ? &(*object)[key] : nullptr;
    if (object == nullptr) {
      throw Error(where + ": there is no field " + pointer.substr(1, end - 1));
    }
  }
  if (!object->is_object()) {
    throw Error(where + ": expected a field that has fields, for " + pointer.substr(1));
  }
  (*object)[pointer.substr(start)] = std::move(value);
  places_[pointer] = where;
}

void YamlDocument::Embed(const std::string& pointer, const YamlDocument& other) {
  json_[Json::json_pointer(pointer)] = other.json_;
  for (const auto& [own, place] : other.places_) {
    places_[pointer + own] = place;
  }
}

Json ParseYamlScalar(const std::string& text) {
  return PlainScalar(text);
}

}  // namespace dcsim
