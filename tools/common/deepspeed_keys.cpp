#include "tools/common/deepspeed_keys.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "model/base/text.h"
#include "tools/common/deepspeed_section_keys.h"
#include "tools/common/deepspeed_top_keys.h"

namespace dcsim {
namespace {

std::vector<DeepSpeedKey> AllKeys() {
  std::vector<DeepSpeedKey> all;
  const auto add = [&all](const auto& keys) { all.insert(all.end(), keys.begin(), keys.end()); };
  add(kTopKeys);
  add(kZeroKeys);
  add(kCompileKeys);
  add(kPrecisionKeys);
  add(kRemovedKeys);
  return all;
}

constexpr std::array<std::string_view, 22> kTypeNames = {
    "flag",          "whole number", "number", "0 to 1", "0 or more",     "whole number",
    "0 to 3",        "text",         "",       "list",   "list of texts", "",
    "dtype",         "truth",        "flag",   "flag",   "whole number",  "number",
    "list of texts", "object",       "object", "any"};

std::string TypeText(const DeepSpeedKey& key) {
  const std::string name(kTypeNames[static_cast<std::size_t>(key.type)]);
  const std::string choices(key.choices);
  return key.choices.empty() ? name : name.empty() ? choices : name + " of " + choices;
}

constexpr std::array<std::string_view, 5> kMeaningNames = {"read", "read", "no effect", "refused",
                                                           "removed in 0.19.8"};

/// Words of names by which people ask for what plans do not say, and where DeepSpeed looks for it.
struct MeantWord {
  std::string_view word;
  std::string_view effect;
};

constexpr std::string_view kLowPrecision = "products here have the recording's dtypes";
constexpr std::string_view kTensorParallel =
    "every rank has whole layers here (DeepSpeed: tensor_parallel.autotp_size)";
constexpr std::string_view kSequenceParallel =
    "every rank has whole sequences here (DeepSpeed: sequence_parallel_size)";
constexpr std::string_view kPipelineParallel =
    "every rank has all layers here (DeepSpeed: pipeline)";
constexpr std::string_view kExpertParallel =
    "every rank has all experts here (DeepSpeed: expert_parallel)";

constexpr auto kMeantWords = std::to_array<MeantWord>({
    {"fp4", kLowPrecision},
    {"fp8", kLowPrecision},
    {"int4", kLowPrecision},
    {"int8", kLowPrecision},
    {"mxfp8", kLowPrecision},
    {"nvfp4", kLowPrecision},
    {"torchao", kLowPrecision},
    {"qat", kLowPrecision},
    {"quantize", kLowPrecision},
    {"quantization", kLowPrecision},
    {"autotp", kTensorParallel},
    {"tp", kTensorParallel},
    {"tensor", kTensorParallel},
    {"sequence", kSequenceParallel},
    {"seq", kSequenceParallel},
    {"sp", kSequenceParallel},
    {"ulysses", kSequenceParallel},
    {"autosp", kSequenceParallel},
    {"context", kSequenceParallel},
    {"pipe", kPipelineParallel},
    {"pipeline", kPipelineParallel},
    {"pp", kPipelineParallel},
    {"moe", kExpertParallel},
    {"expert", kExpertParallel},
    {"experts", kExpertParallel},
    {"ep", kExpertParallel},
    {"autoep", kExpertParallel},
    {"offload",
     "states stay on the GPU here (DeepSpeed: zero_optimization.offload_…, compile.offload_…)"},
});

std::string MeaningText(const DeepSpeedKey& key) {
  std::string text(kMeaningNames[static_cast<std::size_t>(key.meaning)]);
  if (!key.option.empty()) {
    text += ": `" + std::string(key.option) + "`";
  }
  return text;
}

using KeysByPath = std::map<std::string, const DeepSpeedKey*, std::less<>>;

std::string PathOf(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section).append(".").append(name);
}

KeysByPath SortKeys() {
  KeysByPath keys;
  for (const DeepSpeedKey& key : DeepSpeedKeys()) {
    keys.emplace(key.path, &key);
    if (!key.alias.empty()) {
      keys.emplace(PathOf(SectionOf(key.path), key.alias), &key);
    }
  }
  return keys;
}

}  // namespace

std::span<const DeepSpeedKey> DeepSpeedKeys() {
  static const std::vector<DeepSpeedKey> keys = AllKeys();
  return keys;
}

std::string_view LastName(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

std::string_view SectionOf(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

const DeepSpeedKey* FindDeepSpeedKey(std::string_view section, std::string_view name) {
  static const KeysByPath keys = SortKeys();
  const auto found = keys.find(PathOf(section, name));
  return found == keys.end() ? nullptr : found->second;
}

bool IsStrictSection(std::string_view section) {
  const DeepSpeedKey* key = FindDeepSpeedKey(SectionOf(section), LastName(section));
  return key != nullptr && key->type == KeyType::kStrictSection;
}

std::string_view FindMeantEffect(std::string_view name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('_', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    const auto found = std::find_if(kMeantWords.begin(), kMeantWords.end(),
                                    [&](const MeantWord& meant) { return meant.word == word; });
    if (found != kMeantWords.end()) {
      return found->effect;
    }
    begin = end + 1;
  }
  return {};
}

std::string NearestDeepSpeedKey(std::string_view section, std::string_view name) {
  std::vector<std::string_view> names;
  for (const DeepSpeedKey& key : DeepSpeedKeys()) {
    if (SectionOf(key.path) == section && key.meaning != KeyMeaning::kRemoved) {
      names.push_back(LastName(key.path));
      if (!key.alias.empty()) {
        names.push_back(key.alias);
      }
    }
  }
  return DidYouMean(name, names);
}

std::string ScopeText(KeyScope scope) {
  constexpr std::array<std::string_view, 16> kTexts = {"",
                                                       "eager, ZeRO-1 and 2",
                                                       "eager, ZeRO-3",
                                                       "eager",
                                                       "DeepCompile, ZeRO-1 and 2",
                                                       "ZeRO-1 and 2",
                                                       "",
                                                       "",
                                                       "DeepCompile, ZeRO-3",
                                                       "",
                                                       "ZeRO-3",
                                                       "",
                                                       "DeepCompile",
                                                       "",
                                                       "",
                                                       ""};
  return std::string(kTexts[scope]);
}

std::string PrintDeepSpeedKeys() {
  std::string page =
      "# DeepSpeed's keys\n\n"
      "What dc-sim does with each key of a DeepSpeed 0.19.8 configuration. This page is printed "
      "from the table that the reader uses (`tools/common/deepspeed_keys.h`).\n\n"
      "- **read**: becomes the plan spec's option behind it ([plans.md](plans.md)), or does what "
      "the last column says.\n"
      "- **no effect** on the step's time and memory: accepted, with a note.\n"
      "- **refused** unless it has its default: it changes what no plan says.\n"
      "- **removed in 0.19.8**: refused, as DeepSpeed refuses it.\n\n"
      "A key has its meaning under the policies and stages of the column \"for\"; elsewhere it has "
      "no effect.\n\n"
      "A type is what DeepSpeed takes: a flag is also 1 and \"off\", a number also \"8\", as "
      "pydantic reads them; a truth is what Python takes for one (\"false\" is true). Null is "
      "taken "
      "where it is the default.\n\n"
      "| key | type | default | dc-sim | for | |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const DeepSpeedKey& key : DeepSpeedKeys()) {
    const std::string alias = key.alias.empty() ? "" : ", `" + std::string(key.alias) + "`";
    const std::string fallback = key.fallback.empty() ? "" : "`" + std::string(key.fallback) + "`";
    page.append("| `").append(key.path).append("`").append(alias).append(" | ");
    page.append(TypeText(key)).append(" | ").append(fallback);
    page.append(" | ").append(MeaningText(key)).append(" | ").append(ScopeText(key.scope));
    page.append(" | ").append(key.why).append(" |\n");
  }
  page +=
      "\n## Keys that DeepSpeed 0.19.8 does not look for\n\n"
      "At the top level, in `data_types`, `torch_autocast` and `optimizer` DeepSpeed takes any "
      "key. "
      "One that it does not know gets a note. It is refused where a word of its name asks for what "
      "no plan says, unless its value turns that off.\n\n"
      "| word of the name | |\n| --- | --- |\n";
  for (const MeantWord& meant : kMeantWords) {
    page.append("| `").append(meant.word).append("` | ").append(meant.effect).append(" |\n");
  }
  return page;
}

}  // namespace dcsim
