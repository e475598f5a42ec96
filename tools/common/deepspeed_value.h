#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/ir/document.h"
#include "model/ir/dtype.h"
#include "tools/common/deepspeed_keys.h"

namespace dcsim {

/// A value as DeepSpeed 0.19.8 takes it, or what is wrong with it.
struct TakenValue {
  Json value;
  std::string fault;  // "expected …, found …"; empty where there is none
};

/// Turns what stands in a file into what DeepSpeed reads: numbers and flags that stand as text or
/// as each other become what the key asks for, as pydantic does it.
TakenValue TakeDeepSpeedValue(const DeepSpeedKey& key, const Json& value);

/// True for a value that leaves the key's feature off or as DeepSpeed has it by default.
bool IsDeepSpeedDefault(const DeepSpeedKey& key, const Json& value);

/// ASCII letters in lower case, in which DeepSpeed compares names.
std::string LowerCase(std::string_view text);

/// A dtype by DeepSpeed's names ("bf16", "torch.bfloat16", "half", …); nothing for others.
std::optional<DType> FindDeepSpeedDType(std::string_view name);

}  // namespace dcsim
