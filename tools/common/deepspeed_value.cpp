#include "tools/common/deepspeed_value.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "model/base/text.h"

namespace dcsim {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

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
  const std::string word = Lower(value.get_ref<const std::string&>());
  if (std::find(kOn.begin(), kOn.end(), word) != kOn.end()) {
    return true;
  }
  if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) {
    return false;
  }
  return std::nullopt;
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
  const bool outside = text.starts_with('_') || text.ends_with('_') ||
                       text.find("__") != std::string::npos || text.find("-_") == 0;
  if (outside) {
    return std::nullopt;
  }
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
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

TakenValue Refuse(const std::string& expected, const Json& value) {
  constexpr std::size_t kMostShown = 60;
  std::string found = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (found.size() > kMostShown) {
    found = found.substr(0, kMostShown) + "…";
  }
  return {Json(), "expected " + expected + ", found " + found};
}

TakenValue TakeCount(const DeepSpeedKey& key, const Json& value) {
  const auto whole = FindWhole(value);
  const std::string least =
      key.least == INT64_MIN ? "" : " of " + std::to_string(key.least) + " or more";
  if (!whole || *whole < key.least) {
    return Refuse("a whole number" + least, value);
  }
  return {Json(*whole), ""};
}

/// DeepSpeed calculates with these as they are: a text fails there.
TakenValue TakePlain(const DeepSpeedKey& key, const Json& value) {
  if (value.is_null()) {
    return {value, ""};
  }
  if (key.type == KeyType::kPlainFlag) {
    return value.is_boolean() || value == 0 || value == 1
               ? TakenValue{Json(value == true || value == 1), ""}
               : Refuse("true or false", value);
  }
  if (!value.is_number() && !value.is_boolean()) {
    return Refuse(key.type == KeyType::kPlainCount ? "a whole number" : "a number", value);
  }
  if (key.type == KeyType::kPlainCount) {
    const auto whole = FindWhole(value);
    return whole ? TakenValue{Json(*whole), ""} : Refuse("a whole number", value);
  }
  return {Json(*FindFraction(value)), ""};
}

TakenValue TakeStage(const Json& value) {
  const auto stage = FindWhole(value);
  return stage && *stage >= 0 && *stage <= 3 ? TakenValue{Json(*stage), ""}
                                             : Refuse("a stage from 0 to 3", value);
}

TakenValue TakeDevice(const Json& value) {
  const bool known = value == "none" || value == "cpu" || value == "nvme";
  return known ? TakenValue{value, ""} : Refuse("\"none\", \"cpu\" or \"nvme\"", value);
}

TakenValue TakePasses(const Json& value) {
  constexpr std::array<std::string_view, 4> kPasses = {"z1", "z3", "autosp", "autotp"};
  const auto known = [&](const Json& pass) {
    return pass.is_string() && std::find(kPasses.begin(), kPasses.end(),
                                         pass.get_ref<const std::string&>()) != kPasses.end();
  };
  return value.is_null() || (value.is_array() && std::all_of(value.begin(), value.end(), known))
             ? TakenValue{value, ""}
             : Refuse("a list of " + JoinAlternatives(kPasses), value);
}

}  // namespace

TakenValue TakeDeepSpeedValue(const DeepSpeedKey& key, const Json& value) {
  const bool null_is_fine = key.type == KeyType::kOptionalFlag || key.type == KeyType::kText ||
                            key.type == KeyType::kOptionalSection;
  if (null_is_fine && value.is_null()) {
    return {value, ""};
  }
  switch (key.type) {
    case KeyType::kFlag:
    case KeyType::kOptionalFlag: {
      const auto flag = FindFlag(value);
      return flag ? TakenValue{Json(*flag), ""} : Refuse("true or false", value);
    }
    case KeyType::kCount:
      return TakeCount(key, value);
    case KeyType::kNumber: {
      const auto number = FindFraction(value);
      return number ? TakenValue{Json(*number), ""} : Refuse("a number", value);
    }
    case KeyType::kStage:
      return TakeStage(value);
    case KeyType::kDevice:
      return TakeDevice(value);
    case KeyType::kPasses:
      return TakePasses(value);
    case KeyType::kText:
      return value.is_string() ? TakenValue{value, ""} : Refuse("a text", value);
    case KeyType::kStrictSection:
    case KeyType::kOptionalSection:
    case KeyType::kOpenSection:
      return value.is_object() ? TakenValue{value, ""} : Refuse("an object", value);
    case KeyType::kAny:
      return {value, ""};
    default:
      return TakePlain(key, value);
  }
}

bool IsDeepSpeedDefault(const DeepSpeedKey& key, const Json& value) {
  const Json fallback = Json::parse(key.fallback);
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
  if (key.path == "zero_optimization.zero_hpz_partition_size") {
    return value == 0;
  }
  if (key.path == "tensor_parallel.tensor_parallel") {
    return value.is_object() && value.value("tp_size", Json(1)) == 1;
  }
  if (key.path == "gradient_allreduce_op") {
    return value.is_string() && Lower(value.get_ref<const std::string&>()) == "mean";
  }
  return false;
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
