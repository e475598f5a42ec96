#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dcsim {

/// How DeepSpeed 0.19.8 takes a value. Keys of its pydantic classes (kFlag to kDevice) also take
/// texts and numbers that stand for one, as pydantic does.
enum class KeyType : std::uint8_t {
  kFlag,
  kOptionalFlag,  // or null
  kCount,         // a whole number
  kNumber,
  kStage,            // 0 to 3
  kDevice,           // "none", "cpu" or "nvme"
  kPasses,           // null, or a list of "z1", "z3", "autosp" and "autotp"
  kPlainFlag,        // as Python takes a truth value: DeepSpeed checks nothing
  kPlainCount,       // a number that DeepSpeed calculates with, unchecked; null is none
  kPlainNumber,      // the same, with a fraction
  kText,             // or null
  kStrictSection,    // an object: a key that it does not have is an error
  kOptionalSection,  // the same, or null
  kOpenSection,      // an object in which DeepSpeed looks for its keys and ignores others
  kAny,              // DeepSpeed checks nothing that matters here
};

/// What dc-sim does with a key.
enum class KeyMeaning : std::uint8_t {
  kRead,      // becomes an option of the plan, or is compared with the recording
  kNoEffect,  // on a step's time and memory
  kRefused,   // unless it has its default: it changes what plans cannot say
  kRemoved,   // DeepSpeed 0.19.8 refuses it
};

/// Under which policies and stages a key has its meaning; elsewhere it has no effect.
using KeyScope = std::uint8_t;
inline constexpr KeyScope kEager12 = 1;
inline constexpr KeyScope kEager3 = 2;
inline constexpr KeyScope kCompiled12 = 4;
inline constexpr KeyScope kCompiled3 = 8;
inline constexpr KeyScope kEager = kEager12 | kEager3;
inline constexpr KeyScope kCompiled = kCompiled12 | kCompiled3;
inline constexpr KeyScope kStages12 = kEager12 | kCompiled12;
inline constexpr KeyScope kStage3 = kEager3 | kCompiled3;
inline constexpr KeyScope kAlways = kEager | kCompiled;

/// One key of DeepSpeed's configuration.
struct DeepSpeedKey {
  std::string_view path;   // "zero_optimization.stage"
  std::string_view alias;  // its other name in the same section; empty without one
  KeyType type = KeyType::kAny;
  std::string_view fallback;  // DeepSpeed's default, as JSON
  KeyMeaning meaning = KeyMeaning::kNoEffect;
  KeyScope scope = kAlways;
  std::string_view option;         // kRead: the plan spec's key, where one key gives one
  std::string_view why;            // what it does, or why it has no effect or is refused
  std::int64_t least = INT64_MIN;  // of kCount
};

/// All keys that DeepSpeed 0.19.8 knows and some that trainers add, by section.
std::span<const DeepSpeedKey> DeepSpeedKeys();

/// The key of that section ("" for the top level) and name, alias or not; null without one.
const DeepSpeedKey* FindDeepSpeedKey(std::string_view section, std::string_view name);

/// What a key that DeepSpeed 0.19.8 does not look for would change if it did, by a word of its name
/// ("fp8" of "fp8_training"); empty where no word says that it is more than a remark.
std::string_view FindMeantEffect(std::string_view name);

/// ", did you mean 'x'?" among the keys of a section.
std::string NearestDeepSpeedKey(std::string_view section, std::string_view name);

/// "stage" of "zero_optimization.stage", and "zero_optimization".
std::string_view LastName(std::string_view path);
std::string_view SectionOf(std::string_view path);

/// Where a key has its meaning: "eager, ZeRO-3", or nothing where that is everywhere.
std::string ScopeText(KeyScope scope);

/// The table as a page of the documentation (docs/reference/deepspeed_keys.md).
std::string PrintDeepSpeedKeys();

}  // namespace dcsim
