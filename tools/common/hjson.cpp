#include "tools/common/hjson.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/utf8.h"

namespace dcsim {
namespace {

constexpr std::size_t kLargestText = std::size_t{64} << 20;
constexpr std::size_t kMostNodes = 10'000'000;
constexpr std::size_t kMostPlaceBytes = std::size_t{64} << 20;
constexpr std::size_t kMostKeys = 4096;  // of one map: duplicates are looked for one by one
constexpr std::size_t kLongestWord = 400;
constexpr int kDeepest = 64;
constexpr char32_t kHighSurrogate = 0xD800;
constexpr char32_t kLowSurrogate = 0xDC00;
constexpr char32_t kPastSurrogates = 0xE000;

std::string Utf8(char32_t code) {
  const auto byte = [](char32_t bits) {
    return static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (code < 0x80) {
    return {byte(code)};
  }
  const char last = byte(0x80 | (code & 0x3F));
  if (code < 0x800) {
    return {byte(0xC0 | (code >> 6)), last};
  }
  const char middle = byte(0x80 | ((code >> 6) & 0x3F));
  if (code < 0x10000) {
    return {byte(0xE0 | (code >> 12)), middle, last};
  }
  return {byte(0xF0 | (code >> 18)), byte(0x80 | ((code >> 12) & 0x3F)), middle, last};
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  const std::size_t end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

/// JSON's numbers and words; nothing for any other text. A whole number below 1e10 that is written
/// with a point or an exponent is an integer to DeepSpeed's reader.
std::optional<Json> FindJsonWord(std::string_view text) {
  if (text == "null") {
    return Json(nullptr);
  }
  if (text == "true" || text == "false") {
    return Json(text == "true");
  }
  const bool starts = !text.empty() && text.size() <= kLongestWord &&
                      (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  Json number = starts ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
  if (!number.is_number()) {
    return std::nullopt;
  }
  constexpr double kMostWhole = 1e10;
  if (number.is_number_float() && std::abs(number.get<double>()) < kMostWhole) {
    const auto whole = static_cast<std::int64_t>(number.get<double>());
    if (static_cast<double>(whole) == number.get<double>()) {
      return Json(whole);
    }
  }
  return number;
}

class HjsonReader {
 public:
  HjsonReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Json Read() {
    if (text_.starts_with("\xEF\xBB\xBF")) {
      at_ = 3;
    }
    const char first = Next();
    const bool braces = first == '{' || first == '[' || first == 0;
    Json value = first == 0 ? Json::object() : braces ? ReadValue("", 0) : ReadMembers("", 0, 0);
    if (Next() != 0) {
      Fail("expected the end of the file behind its value");
    }
    return value;
  }

  std::map<std::string, std::string> TakePlaces() { return std::move(places_); }

 private:
  [[noreturn]] void Fail(const std::string& what) { Fail(what, at_); }

  [[noreturn]] void Fail(const std::string& what, std::size_t at) {
    throw Error(PlaceOf(at) + ": not valid JSON: " + what);
  }

  /// Asked for places that mostly ascend.
  std::string PlaceOf(std::size_t at) {
    if (at < counted_) {
      counted_ = line_start_ = 0;
      line_ = 1;
    }
    for (; counted_ < at; ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    }
    return file_ + ":" + std::to_string(line_) + ":" + std::to_string(at - line_start_ + 1);
  }

  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  /// The next character that is neither space nor comment; 0 at the end.
  char Next() {
    while (at_ < text_.size()) {
      const char next = text_[at_];
      if (next == ' ' || next == '\t' || next == '\n' || next == '\r') {
        ++at_;
      } else if (next == '#' || (next == '/' && Peek(1) == '/')) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (next == '/' && Peek(1) == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          Fail("the comment has no end");
        }
        at_ = end + 2;
      } else {
        return next;
      }
    }
    return 0;
  }

  void Note(const std::string& pointer, std::size_t at, int depth) {
    std::string place = PlaceOf(at);
    place_bytes_ += pointer.size() + place.size();
    if (depth > kDeepest || ++nodes_ > kMostNodes) {
      throw Error(place + ": nests too deep or has too many fields");
    }
    if (place_bytes_ < kMostPlaceBytes) {
      places_.insert_or_assign(pointer, std::move(place));
    }
  }

  Json ReadValue(const std::string& pointer, int depth) {
    const char first = Next();
    if (depth == 0) {
      Note(pointer, at_, depth);
    }
    if (first == '{') {
      ++at_;
      return ReadMembers(pointer, '}', depth);
    }
    if (first == '[') {
      ++at_;
      return ReadList(pointer, depth);
    }
    if (first == '"' || first == '\'') {
      return ReadQuoted();
    }
    return ReadPlain();
  }

  Json ReadMembers(const std::string& pointer, char end, int depth) {
    Json object = Json::object();
    while (true) {
      const char next = Next();
      if (next == end) {
        at_ += end == 0 ? 0 : 1;
        return object;
      }
      if (next == 0) {
        Fail("expected '}' before the end of the file");
      }
      const std::size_t begin = at_;
      const std::string key = next == '"' || next == '\'' ? ReadQuoted() : ReadPlainKey();
      if (Next() != ':') {
        Fail("expected ':' behind the key '" + key + "'");
      }
      ++at_;
      const std::string own = std::string(pointer).append("/").append(key);
      if (object.contains(key)) {
        throw Error(PlaceOf(begin) + ": key '" + key + "' stands twice");
      }
      if (object.size() >= kMostKeys) {
        throw Error(PlaceOf(begin) + ": a map with more than " + std::to_string(kMostKeys) +
                    " keys");
      }
      Note(own, begin, depth + 1);
      object[key] = ReadValue(own, depth + 1);
      if (Next() == ',') {
        ++at_;
      }
    }
  }

  Json ReadList(const std::string& pointer, int depth) {
    Json list = Json::array();
    while (true) {
      const char next = Next();
      if (next == ']') {
        ++at_;
        return list;
      }
      if (next == 0) {
        Fail("expected ']' before the end of the file");
      }
      const std::string own = pointer + "/" + std::to_string(list.size());
      Note(own, at_, depth + 1);
      list.push_back(ReadValue(own, depth + 1));
      if (Next() == ',') {
        ++at_;
      }
    }
  }

  std::string ReadPlainKey() {
    const std::size_t end = std::min(text_.find_first_of(":{}[],\n", at_), text_.size());
    const std::string_view key = Trimmed(text_.substr(at_, end - at_));
    if (key.empty() || end == text_.size() || text_[end] != ':' ||
        key.find_first_of(" \t\r") != std::string_view::npos) {
      Fail("expected a key and ':'");
    }
    at_ = end;
    return std::string(key);
  }

  /// A number or word ends at a comma, bracket or comment; any other text at the end of the line.
  Json ReadPlain() {
    const std::size_t begin = at_;
    const std::size_t line_end = std::min(text_.find_first_of("\r\n", at_), text_.size());
    const std::string_view line = text_.substr(begin, line_end - begin);
    if (line.find_first_of("{}[],:") == 0) {
      Fail("expected a value");
    }
    for (std::size_t i = 0; i <= line.size(); ++i) {
      const bool comment =
          i + 1 < line.size() && line[i] == '/' && (line[i + 1] == '/' || line[i + 1] == '*');
      const bool ends = i == line.size() || comment || line[i] == ',' || line[i] == '}' ||
                        line[i] == ']' || line[i] == '#';
      if (!ends) {
        continue;
      }
      if (const auto word = FindJsonWord(Trimmed(line.substr(0, i)))) {
        at_ = begin + i;
        return *word;
      }
    }
    at_ = line_end;
    return std::string(Trimmed(line));
  }

  std::string ReadQuoted() {
    const char quote = Peek();
    if (quote == '\'' && Peek(1) == '\'' && Peek(2) == '\'') {
      Fail("texts in three quotes are not supported");
    }
    const std::size_t begin = at_++;
    std::string read;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        Fail("a text that runs over the end of its line", begin);
      }
      if (text_[at_] == '\\') {
        read += ReadEscape();
      } else {
        read += text_[at_++];
      }
    }
    if (at_ == text_.size()) {
      Fail("a text without end", begin);
    }
    ++at_;
    return read;
  }

  std::string ReadEscape() {
    constexpr std::string_view kNames = "\"'\\/bfnrt";
    constexpr std::string_view kMeanings = "\"'\\/\b\f\n\r\t";
    const char name = Peek(1);
    const std::size_t known = name == 0 ? std::string_view::npos : kNames.find(name);
    if (known != std::string_view::npos) {
      at_ += 2;
      return {kMeanings[known]};
    }
    if (name != 'u') {
      Fail("an escape that JSON does not have");
    }
    char32_t code = ReadUnit();
    if (code >= kHighSurrogate && code < kLowSurrogate && Peek() == '\\' && Peek(1) == 'u') {
      const char32_t low = ReadUnit();
      if (low < kLowSurrogate || low >= kPastSurrogates) {
        Fail("half of a surrogate pair");
      }
      code = 0x10000 + ((code - kHighSurrogate) << 10) + (low - kLowSurrogate);
    }
    if (code >= kHighSurrogate && code < kPastSurrogates) {
      Fail("half of a surrogate pair");
    }
    return Utf8(code);
  }

  /// The four digits of "\\u00e9", which stands here.
  char32_t ReadUnit() {
    char32_t code = 0;
    for (std::size_t i = 2; i < 6; ++i) {
      const char digit = Peek(i);
      const std::size_t value =
          std::string_view("0123456789abcdef")
              .find(static_cast<char>(digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit));
      if (digit == 0 || value == std::string_view::npos) {
        Fail("expected four hexadecimal digits behind \\u");
      }
      code = code * 16 + static_cast<char32_t>(value);
    }
    at_ += 6;
    return code;
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  std::size_t line_start_ = 0;
  std::size_t line_ = 1;
  std::size_t nodes_ = 0;
  std::size_t place_bytes_ = 0;
  std::map<std::string, std::string> places_;
};

}  // namespace

YamlDocument ParseHjson(std::string_view text, const std::string& file) {
  if (text.size() > kLargestText) {
    throw Error(file + ": larger than " +
                FormatBytes(Bytes(static_cast<std::int64_t>(kLargestText))));
  }
  if (const auto byte = FindInvalidUtf8(text)) {
    throw Error(file + ": not UTF-8 at byte " + std::to_string(*byte));
  }
  HjsonReader reader(text, file);
  Json json = reader.Read();
  return {std::move(json), reader.TakePlaces()};
}

bool IsHjson(std::string_view text, const std::string& file) {
  const auto ends = [&file](std::string_view ending) { return file.ends_with(ending); };
  if (ends(".json") || ends(".jsonc") || ends(".hjson")) {
    return true;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return !ends(".yaml") && !ends(".yml") && first != std::string_view::npos &&
         (text[first] == '{' || text.substr(first, 2) == "//" || text.substr(first, 2) == "/*");
}

}  // namespace dcsim
