#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dcsim {

/// How DeepSpeed 0.19.8 takes a value. Null is taken where it is the default. Keys of its pydantic
/// classes (kFlag to kTexts) also take texts and numbers that stand for one, as pydantic does.
/// DeepSpeed checks nothing of the plain ones and of open sections: dc-sim does.
enum class KeyType : std::uint8_t {
  kFlag,
  kCount,  // a whole number
  kNumber,
  kShare,       // a number from 0 to 1
  kScale,       // a number of 0 or more, and no flag
  kScaleCount,  // a whole number, and no flag
  kStage,       // 0 to 3
  kText,
  kChoice,  // one of `choices`
  kList,    // of `choices`, or of anything where there are none
  kTexts,   // a list of texts, or one text
  kWord,    // one of `choices`, in capitals or not
  kDType,
  kTruth,      // anything, as Python takes a truth value
  kWholeFlag,  // true, false or a whole number, of which 0 is false
  kPlainFlag,  // true, false, 0 or 1
  kPlainCount,
  kPlainNumber,
  kPlainTexts,
  kStrictSection,  // an object: a key that it does not have is an error
  kOpenSection,    // an object in which DeepSpeed looks for its keys and ignores others
  kAny,            // DeepSpeed checks nothing that matters here
};

/// What dc-sim does with a key.
enum class KeyMeaning : std::uint8_t {
  kRead,  // becomes `option`, a count as elements; without one it is compared with the recording
  kTranslated,  // decides `option` by a rule of its own (deepspeed_config.cpp)
  kNoEffect,    // on a step's time and memory
  kRefused,     // unless it has its default: it changes what plans cannot say
  kRemoved,     // DeepSpeed 0.19.8 refuses it
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
  std::string_view option;         // the plan spec's key, where one key gives one
  std::string_view why;            // what it does, or why it has no effect or is refused
  std::int64_t least = INT64_MIN;  // of kCount
  std::string_view choices = {};   // "none, cpu, nvme"
};

/// All keys that DeepSpeed 0.19.8 knows and some that trainers add, by section.
std::span<const DeepSpeedKey> DeepSpeedKeys();

/// The key of that section ("" for the top level) and name, alias or not; null without one.
const DeepSpeedKey* FindDeepSpeedKey(std::string_view section, std::string_view name);

/// What a key that DeepSpeed 0.19.8 does not look for would change if it did, by a word of its name
/// ("fp8" of "fp8_training"); empty where no word says that it is more than a remark.
std::string_view FindMeantEffect(std::string_view name);

/// True for a section whose class refuses keys that it does not have.
bool IsStrictSection(std::string_view section);

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
