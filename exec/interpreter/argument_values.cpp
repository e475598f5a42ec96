#include "exec/interpreter/argument_values.h"

#include <array>

#include <ATen/ScalarOps.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include "model/base/error.h"
#include "model/base/text.h"

namespace dcsim::exec {
namespace {

c10::TypePtr WithoutOptional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

bool IsTensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType;
}

/// Element type of a list type, or null.
c10::TypePtr ElementOf(const c10::TypePtr& type) {
  const auto list = type->cast<c10::ListType>();
  return list ? list->getElementType() : nullptr;
}

at::Tensor WrappedNumber(const c10::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::Layout ToLayout(const std::string& name) {
  if (name != "strided") {
    throw Error("layout '" + name + "' is not supported, expected strided");
  }
  return c10::Layout::Strided;
}

c10::MemoryFormat ToMemoryFormat(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, c10::MemoryFormat>, 4> kFormats = {
      {{"contiguous", c10::MemoryFormat::Contiguous},
       {"preserve", c10::MemoryFormat::Preserve},
       {"channels_last", c10::MemoryFormat::ChannelsLast},
       {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}}};
  for (const auto& [known, format] : kFormats) {
    if (name == known) {
      return format;
    }
  }
  throw Error("memory format '" + name + "' is not supported");
}

/// One overload an alternative of Argument.
struct Converter {
  const c10::TypePtr& type;  // without the optional
  bool optional;
  c10::Device device;

  c10::IValue operator()(std::monostate) const {
    // None for an optional; an undefined tensor where the schema insists on a tensor.
    return IsTensor(type) && !optional ? c10::IValue(at::Tensor()) : c10::IValue();
  }
  c10::IValue operator()(ValueId) const { return at::Tensor(); }
  c10::IValue operator()(const std::vector<ValueId>& ids) const {
    const c10::TypePtr element = ElementOf(type);
    if (element && element->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      list.resize(ids.size());
      return list;
    }
    c10::List<at::Tensor> list;
    list.resize(ids.size());
    return list;
  }
  c10::IValue operator()(std::int64_t value) const {
    if (IsTensor(type)) {
      return WrappedNumber(value);
    }
    return type->kind() == c10::TypeKind::FloatType ? c10::IValue(static_cast<double>(value))
                                                    : c10::IValue(value);
  }
  c10::IValue operator()(double value) const {
    return IsTensor(type) ? c10::IValue(WrappedNumber(value)) : c10::IValue(value);
  }
  c10::IValue operator()(bool value) const { return value; }
  c10::IValue operator()(const std::string& value) const { return value; }
  c10::IValue operator()(const std::vector<std::int64_t>& values) const {
    const c10::TypePtr element = ElementOf(type);
    if (values.empty() && element && element->kind() == c10::TypeKind::BoolType) {
      return c10::List<bool>();
    }
    if (element && element->kind() == c10::TypeKind::FloatType) {
      return std::vector<double>(values.begin(), values.end());
    }
    return values;
  }
  c10::IValue operator()(const std::vector<double>& values) const { return values; }
  c10::IValue operator()(const std::vector<bool>& values) const {
    c10::List<bool> list;
    for (const bool value : values) {
      list.push_back(value);
    }
    return list;
  }
  c10::IValue operator()(DType dtype) const {
    return static_cast<std::int64_t>(ToScalarType(dtype));
  }
  c10::IValue operator()(DeviceArgument argument) const {
    return argument.local ? device : c10::Device(c10::DeviceType::CPU);
  }
  c10::IValue operator()(const LayoutArgument& layout) const {
    return static_cast<std::int64_t>(ToLayout(layout.name));
  }
  c10::IValue operator()(const MemoryFormatArgument& format) const {
    return static_cast<std::int64_t>(ToMemoryFormat(format.name));
  }
};

}  // namespace

c10::ScalarType ToScalarType(DType dtype) {
  constexpr std::array<c10::ScalarType, 15> kTypes = {
      c10::ScalarType::Bool,        c10::ScalarType::Byte,         c10::ScalarType::Char,
      c10::ScalarType::Short,       c10::ScalarType::Int,          c10::ScalarType::Long,
      c10::ScalarType::UInt64,      c10::ScalarType::Half,         c10::ScalarType::BFloat16,
      c10::ScalarType::Float,       c10::ScalarType::Double,       c10::ScalarType::Float8_e4m3fn,
      c10::ScalarType::Float8_e5m2, c10::ScalarType::ComplexFloat, c10::ScalarType::ComplexDouble};
  return kTypes[static_cast<std::size_t>(dtype)];
}

c10::IValue ToIValue(const Argument& argument, const c10::TypePtr& type, c10::Device device) {
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  return std::visit(Converter{WithoutOptional(type), optional, device}, argument);
}

}  // namespace dcsim::exec
