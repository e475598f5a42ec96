#include "tools/common/deepspeed_value.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "model/base/text.h"

namespace dcsim {

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

namespace {

std::string Stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string()
                                         : std::string(text.substr(begin, end + 1 - begin));
}

/// 0 and 1, also as fractions, and the words that pydantic takes for a flag.
std::optional<bool> FindFlag(const Json& value) {
  constexpr std::array<std::string_view, 6> kOn = {"1", "on", "t", "true", "y", "yes"};
  constexpr std::array<std::string_view, 6> kOff = {"0", "off", "f", "false", "n", "no"};
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_number() && (value == 0 || value == 1)) {
    return value == 1;
  }
  if (!value.is_string()) {
    return std::nullopt;
  }
  const std::string word = LowerCase(value.get_ref<const std::string&>());
  if (std::find(kOn.begin(), kOn.end(), word) != kOn.end()) {
    return true;
  }
  if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) {
    return false;
  }
  return std::nullopt;
}

/// Underscores between digits, as Python takes them; nothing where they stand elsewhere.
std::optional<std::string> WithoutUnderscores(std::string_view written) {
  std::string text(written);
  if (text.starts_with('_') || text.ends_with('_') || text.find("__") != std::string::npos ||
      text.starts_with("-_")) {
    return std::nullopt;
  }
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  return text;
}

/// "2_000" and "2.0" stand for a whole number, "2e3" does not.
std::optional<std::int64_t> FindWholeText(std::string_view written) {
  std::string text = Stripped(written);
  const std::size_t point = text.find('.');
  if (point != std::string::npos && point + 1 < text.size() &&
      text.find_first_not_of('0', point + 1) == std::string::npos) {
    text.resize(point);
  }
  if (text.starts_with('+')) {
    text.erase(0, 1);
  }
  const auto plain = WithoutUnderscores(text);
  if (!plain) {
    return std::nullopt;
  }
  text = *plain;
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const std::size_t first = text.find_first_not_of('0', digits);
  if (first != std::string::npos && first > digits) {
    text.erase(digits, first - digits);  // pydantic takes leading zeros
  } else if (first == std::string::npos && text.size() > digits) {
    text = "0";
  }
  return FindInteger(text);
}

std::optional<std::int64_t> FindWhole(const Json& value) {
  if (value.is_boolean()) {
    return value.get<bool>() ? 1 : 0;
  }
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number > INT64_MAX ? std::nullopt : std::optional(static_cast<std::int64_t>(number));
  }
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (value.is_number_float()) {
    constexpr double kMost = 9.2e18;
    const double number = value.get<double>();
    const bool whole = std::abs(number) < kMost && std::floor(number) == number;
    return whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  return value.is_string() ? FindWholeText(value.get_ref<const std::string&>()) : std::nullopt;
}

std::optional<double> FindFraction(const Json& value) {
  if (value.is_boolean()) {
    return value.get<bool>() ? 1 : 0;
  }
  if (value.is_number()) {
    return value.get<double>();
  }
  return value.is_string() ? FindNumber(Stripped(value.get_ref<const std::string&>()))
                           : std::nullopt;
}

/// "a whole number, found \"x\"".
std::string Found(const std::string& expected, const Json& value) {
  constexpr std::size_t kMostShown = 60;
  std::string found = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (found.size() > kMostShown) {
    found = found.substr(0, kMostShown) + "…";
  }
  return expected + ", found " + found;
}

TakenValue Refuse(const std::string& expected, const Json& value) {
  return {Json(), "expected " + Found(expected, value)};
}

/// What DeepSpeed does not check.
TakenValue RefuseHere(const std::string& expected, const Json& value) {
  return {Json(), "dc-sim expects " + Found(expected, value)};
}

bool IsTrue(const Json& value) {
  const bool zero = value.is_number() && value == 0;
  const bool nothing = value == "" || value == false || zero;
  return !nothing && !value.empty();
}

std::vector<std::string_view> ChoicesOf(const DeepSpeedKey& key) {
  std::vector<std::string_view> choices;
  for (std::string_view rest = key.choices; !rest.empty();) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    choices.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return choices;
}

bool IsAmong(const std::vector<std::string_view>& choices, std::string_view name) {
  return std::find(choices.begin(), choices.end(), name) != choices.end();
}

TakenValue TakeFlag(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto flag = FindFlag(value);
  return flag ? TakenValue{Json(*flag), ""} : Refuse("true or false", value);
}

TakenValue TakeCount(const DeepSpeedKey& key, const Json& value) {
  const auto whole = FindWhole(value);
  const std::string least =
      key.least == INT64_MIN ? "" : " of " + std::to_string(key.least) + " or more";
  return whole && *whole >= key.least ? TakenValue{Json(*whole), ""}
                                      : Refuse("a whole number" + least, value);
}

TakenValue TakeNumber(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto number = FindFraction(value);
  return number ? TakenValue{Json(*number), ""} : Refuse("a number", value);
}

TakenValue TakeShare(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto number = FindFraction(value);
  return number && *number >= 0 && *number <= 1 ? TakenValue{Json(*number), ""}
                                                : Refuse("a number from 0 to 1", value);
}

/// As Python's float() reads a text.
TakenValue TakeScale(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto plain = value.is_string() ? WithoutUnderscores(value.get_ref<const std::string&>())
                                       : std::optional<std::string>();
  const auto number =
      value.is_boolean() ? std::nullopt : FindFraction(plain ? Json(*plain) : value);
  return number && *number >= 0 ? TakenValue{Json(*number), ""}
                                : Refuse("a number of 0 or more", value);
}

/// As Python's int() reads a text.
TakenValue TakeScaleCount(const DeepSpeedKey& key, const Json& value) {
  const bool fraction =
      value.is_string() && value.get_ref<const std::string&>().find('.') != std::string::npos;
  return value.is_boolean() || fraction ? Refuse("a whole number", value) : TakeCount(key, value);
}

TakenValue TakeStage(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto stage = FindWhole(value);
  return stage && *stage >= 0 && *stage <= 3 ? TakenValue{Json(*stage), ""}
                                             : Refuse("a stage from 0 to 3", value);
}

TakenValue TakeText(const DeepSpeedKey& /*key*/, const Json& value) {
  return value.is_string() ? TakenValue{value, ""} : Refuse("a text", value);
}

TakenValue TakeChoice(const DeepSpeedKey& key, const Json& value) {
  const auto choices = ChoicesOf(key);
  const bool known = value.is_string() && IsAmong(choices, value.get_ref<const std::string&>());
  return known ? TakenValue{value, ""} : Refuse(JoinAlternatives(choices), value);
}

TakenValue TakeWord(const DeepSpeedKey& key, const Json& value) {
  const Json lower =
      value.is_string() ? Json(LowerCase(value.get_ref<const std::string&>())) : value;
  const TakenValue taken = TakeChoice(key, lower);
  return taken.fault.empty() ? taken : Refuse(JoinAlternatives(ChoicesOf(key)), value);
}

TakenValue TakeList(const DeepSpeedKey& key, const Json& value) {
  const bool known =
      value.is_array() && std::all_of(value.begin(), value.end(), [&](const Json& each) {
        return key.choices.empty() || TakeChoice(key, each).fault.empty();
      });
  return known ? TakenValue{value, ""}
               : Refuse(key.choices.empty() ? "a list"
                                            : "a list of " + JoinAlternatives(ChoicesOf(key)),
                        value);
}

TakenValue TakeTexts(const DeepSpeedKey& /*key*/, const Json& value) {
  const bool texts =
      value.is_string() ||
      (value.is_array() &&
       std::all_of(value.begin(), value.end(), [](const Json& each) { return each.is_string(); }));
  return texts ? TakenValue{value, ""} : Refuse("a list of texts", value);
}

TakenValue TakeDType(const DeepSpeedKey& /*key*/, const Json& value) {
  const bool known =
      value.is_string() && (FindDeepSpeedDType(value.get_ref<const std::string&>()) ||
                            value == "int8" || value == "torch.int8");
  return known ? TakenValue{value, ""} : Refuse("a dtype such as \"bf16\"", value);
}

TakenValue TakeTruth(const DeepSpeedKey& /*key*/, const Json& value) {
  return {Json(IsTrue(value)), ""};
}

TakenValue TakeWholeFlag(const DeepSpeedKey& /*key*/, const Json& value) {
  return value.is_boolean() || value.is_number_integer() ? TakenValue{Json(IsTrue(value)), ""}
                                                         : Refuse("true or false", value);
}

TakenValue TakePlainFlag(const DeepSpeedKey& /*key*/, const Json& value) {
  return value.is_boolean() || value == 0 || value == 1
             ? TakenValue{Json(value == true || value == 1), ""}
             : Refuse("true or false", value);
}

TakenValue TakePlainCount(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto whole = value.is_string() ? std::nullopt : FindWhole(value);
  return whole ? TakenValue{Json(*whole), ""} : RefuseHere("a whole number", value);
}

TakenValue TakePlainNumber(const DeepSpeedKey& /*key*/, const Json& value) {
  const auto number = value.is_string() ? std::nullopt : FindFraction(value);
  return number ? TakenValue{Json(*number), ""} : RefuseHere("a number", value);
}

TakenValue TakePlainTexts(const DeepSpeedKey& key, const Json& value) {
  return TakeTexts(key, value).fault.empty() ? TakenValue{value, ""}
                                             : RefuseHere("a list of texts", value);
}

TakenValue TakeSection(const DeepSpeedKey& /*key*/, const Json& value) {
  return value.is_object() ? TakenValue{value, ""} : RefuseHere("an object", value);
}

TakenValue TakeAny(const DeepSpeedKey& /*key*/, const Json& value) {
  return {value, ""};
}

/// In the order of KeyType.
constexpr std::array kTakers = {&TakeFlag,       &TakeCount,       &TakeNumber,     &TakeShare,
                                &TakeScale,      &TakeScaleCount,  &TakeStage,      &TakeText,
                                &TakeChoice,     &TakeList,        &TakeTexts,      &TakeWord,
                                &TakeDType,      &TakeTruth,       &TakeWholeFlag,  &TakePlainFlag,
                                &TakePlainCount, &TakePlainNumber, &TakePlainTexts, &TakeSection,
                                &TakeSection,    &TakeAny};
static_assert(kTakers.size() == static_cast<std::size_t>(KeyType::kAny) + 1);

}  // namespace

TakenValue TakeDeepSpeedValue(const DeepSpeedKey& key, const Json& value) {
  const bool null_is_fine = key.fallback == "null" || IsAmong(ChoicesOf(key), "null");
  return value.is_null() && null_is_fine ? TakenValue{value, ""}
                                         : kTakers[static_cast<std::size_t>(key.type)](key, value);
}

bool IsDeepSpeedDefault(const DeepSpeedKey& key, const Json& value) {
  const Json fallback = key.fallback.empty() ? Json() : Json::parse(key.fallback);
  if (key.path == "zero_optimization.zenflow") {
    return value.is_null();  // {} turns it on with its own defaults
  }
  if (value.is_null() || value == Json::object() || value == fallback ||
      (fallback.is_null() && value == false)) {
    return true;
  }
  if (key.path == "tensor_parallel.autotp_size" || key.path == "sequence_parallel_size") {
    return value == 0 || value == 1;
  }
  return key.path == "zero_optimization.zero_hpz_partition_size" && value == 0;
}

std::optional<DType> FindDeepSpeedDType(std::string_view name) {
  const std::string_view bare = name.starts_with("torch.") ? name.substr(6) : name;
  if (bare == "bfloat16" || name == "bf16") {
    return DType::kBFloat16;
  }
  if (bare == "float16" || name == "fp16" || name == "half") {
    return DType::kFloat16;
  }
  if (bare == "float32" || name == "fp32" || name == "float") {
    return DType::kFloat32;
  }
  return std::nullopt;
}

}  // namespace dcsim
