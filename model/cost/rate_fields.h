#pragma once

#include <string_view>
#include <tuple>

#include "model/machine/machine_fields.h"

namespace dcsim {

/// What a number of a cost model may be.
enum class RateRange : std::uint8_t {
  kShare,     // above 0 and up to 1
  kPositive,  // above 0
  kAtLeastZero,
  kUpToOne,  // from 0 on
  kTime,     // up to a second
  kPart,     // an object with numbers of its own
};

/// One number of a cost model: its key in the file of a GPU, where the model keeps it, and what it
/// may be. `Owner::Fields()` lists those of a struct.
template <typename Owner, typename T>
struct RateField {
  std::string_view key;
  T Owner::*member;
  RateRange range;
};

template <typename Owner>
constexpr RateField<Owner, double> ShareField(std::string_view key, double Owner::*member) {
  return {key, member, RateRange::kShare};
}
template <typename Owner>
constexpr RateField<Owner, double> PositiveField(std::string_view key, double Owner::*member) {
  return {key, member, RateRange::kPositive};
}
template <typename Owner>
constexpr RateField<Owner, Duration> TimeField(std::string_view key, Duration Owner::*member) {
  return {key, member, RateRange::kTime};
}
template <typename Owner, typename Part>
constexpr RateField<Owner, Part> PartField(std::string_view key, Part Owner::*member) {
  return {key, member, RateRange::kPart};
}

/// A number within its range; required.
void ReadRateNumber(ObjectReader& object, std::string_view key, RateRange range, double& number);

template <typename Rates>
void ReadRates(ObjectReader& object, Rates& rates);

/// A required object, which has no other keys.
template <typename Part>
void ReadRatePart(ObjectReader& object, std::string_view key, Part& part) {
  if (const Json* value = object.Require(key); value != nullptr) {
    const Path path = object.At(key);  // which the reader keeps a reference to
    ObjectReader fields(*value, path, object.faults());
    ReadRates(fields, part);
    fields.RejectUnknown();
  }
}

template <typename Owner, typename T, typename Rates>
void ReadRateField(ObjectReader& object, const RateField<Owner, T>& field, Rates& rates) {
  if constexpr (std::is_same_v<T, double>) {
    ReadRateNumber(object, field.key, field.range, rates.*field.member);
  } else if constexpr (std::is_same_v<T, Duration>) {
    object.Required(field.key, ReadTime, rates.*field.member);
  } else {
    ReadRatePart(object, field.key, rates.*field.member);
  }
}

/// Reads the fields of a struct in the order in which it lists them.
template <typename Rates>
void ReadRates(ObjectReader& object, Rates& rates) {
  std::apply([&](const auto&... field) { (ReadRateField(object, field, rates), ...); },
             Rates::Fields());
}

}  // namespace dcsim
