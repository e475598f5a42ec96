#include "tools/common/json_text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace dcsim {
namespace {

constexpr std::size_t kWidth = 120;

/// The value on one line; nothing when that takes more than `room` characters.
std::optional<std::string> OneLine(const Json& value, std::size_t room) {
  if (!value.is_structured()) {
    std::string word = value.dump();
    return word.size() <= room ? std::optional(std::move(word)) : std::nullopt;
  }
  std::string text = value.is_object() ? "{" : "[";
  for (const auto& [key, element] : value.items()) {
    text += (text.size() == 1 ? "" : ", ") + (value.is_object() ? Json(key).dump() + ": " : "");
    const auto line = text.size() < room ? OneLine(element, room - text.size()) : std::nullopt;
    if (!line) {
      return std::nullopt;
    }
    text += *line;
  }
  text += value.is_object() ? "}" : "]";
  return text.size() <= room ? std::optional(text) : std::nullopt;
}

class Printer {
 public:
  /// Adds the value where `column` characters of the line are taken, and a comma may follow.
  void Add(const Json& value, std::size_t indent, std::size_t column) {
    const auto line = OneLine(value, kWidth - std::min(kWidth, column + 1));
    if (line || !value.is_structured()) {
      text_ += line.value_or(value.dump());
    } else {
      AddLines(value, indent + 1);
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  void AddLines(const Json& value, std::size_t indent) {
    const bool fills = value.is_array() &&
                       std::none_of(value.begin(), value.end(),
                                    [](const Json& element) { return element.is_structured(); });
    text_ += value.is_object() ? '{' : '[';
    std::size_t column = 0;
    bool first = true;
    for (const auto& [key, element] : value.items()) {
      text_ += first ? "" : ",";
      const std::string word = fills ? element.dump() : "";
      if (fills && !first && column + word.size() + 3 <= kWidth) {
        text_ += " " + word;
        column += word.size() + 2;
        continue;
      }
      first = false;
      const std::string start = value.is_object() ? Json(key).dump() + ": " : "";
      text_ += "\n" + std::string(indent, ' ') + start;
      column = indent + start.size();
      if (fills) {
        text_ += word;
        column += word.size();
      } else {
        Add(element, indent, column);
      }
    }
    text_ += "\n" + std::string(indent - 1, ' ') + (value.is_object() ? '}' : ']');
  }

  std::string text_;
};

}  // namespace

std::string PrintJson(const Json& document) {
  Printer printer;
  printer.Add(document, 0, 0);
  return printer.Take() + "\n";
}

}  // namespace dcsim
