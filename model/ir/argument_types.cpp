#include "model/ir/argument_types.h"

namespace dcsim {

bool FitsType(const Argument& argument, std::string_view type) {
  const bool optional = type.ends_with('?');
  const std::string_view base = optional ? type.substr(0, type.size() - 1) : type;
  const bool tensor_list = base == "Tensor[]" || base == "Tensor?[]";
  const bool list = base.ends_with(']');
  const bool number = base == "Scalar" || base == "number";
  switch (argument.index()) {
    case 0:  // None; an undefined tensor for plain Tensor
      return optional || base == "Tensor";
    case 1:
      return base == "Tensor";
    case 2:
      return tensor_list;
    case 3:  // a number where a tensor is expected is PyTorch's wrapped number
      return base == "int" || base == "SymInt" || number || base == "float" || base == "Tensor";
    case 4:
      return base == "float" || number || base == "Tensor";
    case 5:
      return base == "bool" || number;
    case 6:
      return base == "str";
    case 7:
      return list && !tensor_list && !base.starts_with("bool");
    case 8:
      return list && (base.starts_with("float") || base.starts_with("Scalar"));
    case 9:
      return list && base.starts_with("bool");
    case 10:
      return base == "ScalarType" || base == "int";
    case 11:
      return base == "Device";
    case 12:
      return base == "Layout" || base == "int";
    default:
      return base == "MemoryFormat" || base == "int";
  }
}

}  // namespace dcsim
