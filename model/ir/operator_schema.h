#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dcsim {

/// One argument or return of an operator, as the schema string states it.
struct SchemaField {
  std::string
      type;  // "Tensor", "Tensor?", "Tensor[]", "int[]", "ScalarType?", … without alias marks
  std::string name;      // empty for an unnamed return
  bool aliases = false;  // "Tensor(a)": shares a storage with other fields of that mark
  bool writes = false;   // "Tensor(a!)": the operator changes it
};

/// An operator's signature in PyTorch's notation,
/// "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
struct OperatorSchema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor", or empty
  std::vector<SchemaField> arguments;
  std::vector<SchemaField> returns;
};

/// Reads a schema string; nothing when it is none. Default values are skipped, since recorded
/// graphs spell every argument out.
std::optional<OperatorSchema> FindSchema(std::string_view text);

}  // namespace dcsim
