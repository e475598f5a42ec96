#include "model/ir/argument_reader.h"

#include <cmath>
#include <limits>

namespace dcsim {
namespace {

constexpr std::string_view kForms =
    "a number, a text, true, false, null, a list of these, or one of {\"v\"}, {\"vs\"}, {\"f\"}, "
    "{\"dtype\"}, {\"device\"}, {\"layout\"}, {\"memory_format\"}";

Argument BadArgument(const Path& path, Faults& faults) {
  faults.Add(path, "expected an argument: " + std::string(kForms));
  return std::monostate();
}

std::vector<ValueId> ReadValueIds(const Json& list,
                                  std::size_t value_count,
                                  const Path& path,
                                  Faults& faults) {
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < list.size(); ++i) {
    ids.push_back(list[i].is_null() ? ValueId::None()
                                    : ReadValueId(list[i], value_count, Path(path, i), faults));
  }
  return ids;
}

template <typename T>
std::vector<T> ReadList(const Json& list) {
  std::vector<T> values;
  values.reserve(list.size());
  for (const Json& element : list) {
    values.push_back(element.get<T>());
  }
  return values;
}

template <typename Predicate>
bool AllElements(const Json& list, Predicate predicate) {
  for (const Json& element : list) {
    if (!predicate(element)) {
      return false;
    }
  }
  return true;
}

bool IsSignedInteger(const Json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
}

Argument ReadArrayArgument(const Json& list, const Path& path, Faults& faults) {
  if (AllElements(list, IsSignedInteger)) {
    return ReadList<std::int64_t>(list);
  }
  if (AllElements(list, [](const Json& element) { return element.is_number_float(); })) {
    return ReadList<double>(list);
  }
  if (AllElements(list, [](const Json& element) { return element.is_boolean(); })) {
    return ReadList<bool>(list);
  }
  return BadArgument(path, faults);
}

Argument ReadSpecialFloat(const Json& value, const Path& path, Faults& faults) {
  if (value == "inf") {
    return std::numeric_limits<double>::infinity();
  }
  if (value == "-inf") {
    return -std::numeric_limits<double>::infinity();
  }
  if (value == "nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return BadArgument(path, faults);
}

Argument ReadDTypeArgument(const Json& value, const Path& path, Faults& faults) {
  const auto index = ReadChoice(value, DTypeNames(), path, faults);
  return index ? Argument(static_cast<DType>(*index)) : Argument();
}

Argument ReadTaggedArgument(const Json& object,
                            std::size_t value_count,
                            const Path& path,
                            Faults& faults) {
  if (object.size() != 1) {
    return BadArgument(path, faults);
  }
  const auto entry = object.begin();
  const std::string& tag = entry.key();
  const Json& value = *entry;
  const Path here(path, tag);
  if (tag == "v") {
    return ReadValueId(value, value_count, here, faults);
  }
  if (tag == "vs" && value.is_array()) {
    return ReadValueIds(value, value_count, here, faults);
  }
  if (tag == "f") {
    return ReadSpecialFloat(value, path, faults);
  }
  if (tag == "dtype") {
    return ReadDTypeArgument(value, here, faults);
  }
  if (tag == "device" && (value == "local" || value == "cpu")) {
    return DeviceArgument{value == "local"};
  }
  if (tag == "layout" && value.is_string()) {
    return LayoutArgument{value.get<std::string>()};
  }
  if (tag == "memory_format" && value.is_string()) {
    return MemoryFormatArgument{value.get<std::string>()};
  }
  return BadArgument(path, faults);
}

Json PrintValueId(ValueId id) {
  return id.is_none() ? Json(nullptr) : Json(id.index());
}

Json PrintFloat(double value) {
  if (std::isnan(value)) {
    return {{"f", "nan"}};
  }
  if (std::isinf(value)) {
    return {{"f", value > 0 ? "inf" : "-inf"}};
  }
  return value;
}

/// One overload an alternative of Argument.
struct ArgumentPrinter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(ValueId id) const { return {{"v", id.index()}}; }
  Json operator()(const std::vector<ValueId>& ids) const {
    Json list = Json::array();
    for (const ValueId id : ids) {
      list.push_back(PrintValueId(id));
    }
    return {{"vs", list}};
  }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(double value) const { return PrintFloat(value); }
  Json operator()(bool value) const { return value; }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const std::vector<std::int64_t>& values) const { return values; }
  Json operator()(const std::vector<double>& values) const { return values; }
  Json operator()(const std::vector<bool>& values) const { return values; }
  Json operator()(DType dtype) const { return {{"dtype", DTypeName(dtype)}}; }
  Json operator()(DeviceArgument device) const {
    return {{"device", device.local ? "local" : "cpu"}};
  }
  Json operator()(const LayoutArgument& layout) const { return {{"layout", layout.name}}; }
  Json operator()(const MemoryFormatArgument& format) const {
    return {{"memory_format", format.name}};
  }
};

}  // namespace

ValueId ReadValueId(const Json& value, std::size_t value_count, const Path& path, Faults& faults) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= value_count) {
    faults.Add(path, "expected a value id below " + std::to_string(value_count));
    return ValueId::None();
  }
  return ValueId(value.get<std::size_t>());
}

Argument ReadArgument(const Json& value,
                      std::size_t value_count,
                      const Path& path,
                      Faults& faults) {
  switch (value.type()) {
    case Json::value_t::null:
      return std::monostate();
    case Json::value_t::boolean:
      return value.get<bool>();
    case Json::value_t::string:
      return value.get<std::string>();
    case Json::value_t::number_float:
      return value.get<double>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return IsSignedInteger(value) ? Argument(value.get<std::int64_t>())
                                    : BadArgument(path, faults);
    case Json::value_t::array:
      return ReadArrayArgument(value, path, faults);
    case Json::value_t::object:
      return ReadTaggedArgument(value, value_count, path, faults);
    default:
      return BadArgument(path, faults);
  }
}

Json PrintArgument(const Argument& argument) {
  return std::visit(ArgumentPrinter(), argument);
}

}  // namespace dcsim
