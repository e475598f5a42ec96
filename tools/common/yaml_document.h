#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/ir/document.h"

namespace dcsim {

/// A file in the JSON form that the model's readers take, with the place of every field.
class YamlDocument {
 public:
  YamlDocument() = default;

  /// `places`: "`file`:line:column" by JSON pointer.
  YamlDocument(Json json, std::map<std::string, std::string> places)
      : json_(std::move(json)),
        places_(std::move(places)) {}

  /// Throws Error "`file`:line:column: …" where the text is no YAML or no UTF-8, holds a key twice
  /// or a second document, uses tags, or is larger than a plan or cluster can be.
  static YamlDocument Parse(std::string_view text, const std::string& file);

  const Json& json() const { return json_; }
  Json& json() { return json_; }

  /// "`file`:line:column" of a field, or of the innermost field around it that the file has.
  Locator locator() const;

  /// Puts `value` at the field of a JSON pointer, as if it stood at `where`. Throws Error when the
  /// field around it does not exist.
  void Set(const std::string& pointer, Json value, const std::string& where);

  /// Replaces the field at `pointer` by another document, whose places are kept.
  void Embed(const std::string& pointer, const YamlDocument& other);

 private:
  Json json_;
  std::map<std::string, std::string> places_;  // by JSON pointer
};

/// A scalar as YAML reads it: true, 4, 0.5, or text.
Json ParseYamlScalar(const std::string& text);

}  // namespace dcsim
