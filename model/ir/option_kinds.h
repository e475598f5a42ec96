#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/ir/plan_options.h"

namespace dcsim {

/// The field of `options` that member pointers lead to, one after the other.
template <auto... kPath>
auto& FieldOf(ScheduleOptions& options) {
  return (options.*....*kPath);
}
template <auto... kPath>
const auto& FieldOf(const ScheduleOptions& options) {
  return (options.*....*kPath);
}

/// Another number for another value.
template <typename T>
std::uint64_t BitsOf(const T& value) {
  return static_cast<std::uint64_t>(value);
}
template <typename T>
std::uint64_t BitsOf(const std::optional<T>& value) {
  return value ? BitsOf(*value) + 1 : 0;
}
template <auto... kPath>
std::uint64_t BitsOfField(const ScheduleOptions& options) {
  return BitsOf(FieldOf<kPath...>(options));
}

/// true or false.
template <auto... kPath>
PlanOption Flag(std::string_view key, std::string_view meaning) {
  PlanOption option{.key = key, .meaning = meaning};
  option.read = [](const PlanOption& of, ObjectReader& object, ScheduleOptions& options) {
    object.Optional(of.key, ReadBool, FieldOf<kPath...>(options));
  };
  option.print = [](const PlanOption&, const ScheduleOptions& options) {
    return Json(FieldOf<kPath...>(options));
  };
  option.bits = BitsOfField<kPath...>;
  return option;
}

/// An enumerator by its name; `names` in its order.
template <auto... kPath>
PlanOption Choice(std::string_view key,
                  std::span<const std::string_view> names,
                  std::string_view meaning) {
  PlanOption option{.key = key, .meaning = meaning, .names = names};
  option.read = [](const PlanOption& of, ObjectReader& object, ScheduleOptions& options) {
    object.OptionalChoice(of.key, of.names, FieldOf<kPath...>(options));
  };
  option.print = [](const PlanOption& of, const ScheduleOptions& options) {
    return Json(std::string(of.names[static_cast<std::size_t>(FieldOf<kPath...>(options))]));
  };
  option.bits = BitsOfField<kPath...>;
  return option;
}

/// A whole number from `least` to `most`.
template <auto... kPath>
PlanOption Whole(std::string_view key,
                 std::int64_t least,
                 std::int64_t most,
                 std::string_view unit,
                 std::string_view meaning) {
  PlanOption option{.key = key, .meaning = meaning};
  option.least = least;
  option.most = most;
  option.unit = unit;
  option.read = [](const PlanOption& of, ObjectReader& object, ScheduleOptions& options) {
    std::int64_t value = 0;
    if (!object.Optional(of.key, ReadInteger, value)) {
      return;
    }
    if (value < of.least || value > of.most) {
      object.faults().Add(object.At(of.key),
                          "expected a whole number from " + std::to_string(of.least) + " to " +
                              std::to_string(of.most) + ", found " + std::to_string(value));
      return;
    }
    FieldOf<kPath...>(options) = static_cast<int>(value);
  };
  option.print = [](const PlanOption&, const ScheduleOptions& options) {
    return Json(FieldOf<kPath...>(options));
  };
  option.bits = BitsOfField<kPath...>;
  return option;
}

inline std::optional<DType> OptionalDType(std::optional<DType> dtype) {
  return dtype;
}

/// A dtype by its name; another name is none, of a field that may be so.
template <auto... kPath>
PlanOption DTypeChoice(std::string_view key,
                       std::span<const std::string_view> names,
                       std::string_view meaning) {
  PlanOption option{.key = key, .meaning = meaning, .names = names};
  option.read = [](const PlanOption& of, ObjectReader& object, ScheduleOptions& options) {
    auto& field = FieldOf<kPath...>(options);
    std::size_t choice = 0;
    if (!object.OptionalChoice(of.key, of.names, choice)) {
      return;
    }
    if constexpr (std::is_same_v<decltype(field), DType&>) {
      field = *FindDType(of.names[choice]);
    } else {
      field = FindDType(of.names[choice]);
    }
  };
  option.print = [](const PlanOption& of, const ScheduleOptions& options) {
    const auto dtype = OptionalDType(FieldOf<kPath...>(options));
    return Json(std::string(dtype ? DTypeName(*dtype) : of.names.front()));
  };
  option.bits = BitsOfField<kPath...>;
  return option;
}

}  // namespace dcsim
