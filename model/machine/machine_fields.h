#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/units.h"
#include "model/ir/document.h"

namespace dcsim {

/// The numbers of clusters and GPUs have bounds, within which what is computed of them stays far
/// from 63 bits.
constexpr std::int64_t kMostCount = 1'000'000;

/// The time of a call, a kernel or a gap: at most a second.
std::optional<Duration> ReadTime(const Json& value, const Path& path, Faults& faults);
/// Of a whole collective: at most an hour.
std::optional<Duration> ReadLongTime(const Json& value, const Path& path, Faults& faults);
/// At most 2^60 bytes.
std::optional<Bytes> ReadSize(const Json& value, const Path& path, Faults& faults);

/// A value that is there has to be more than 0.
void CheckPositive(ObjectReader& object, std::string_view key, double value);
/// A count from 1 to 1,000,000; required.
void ReadCount(ObjectReader& object, std::string_view key, int& target);
/// The same where the key is there.
void ReadOptionalCount(ObjectReader& object, std::string_view key, int& target);
/// A number above 0; required.
void ReadPositive(ObjectReader& fields, std::string_view key, double& target);
/// A share above 0 and up to 1; required.
void ReadShare(ObjectReader& object, std::string_view key, double& target);
/// A rate above 0 and up to 10^18 bytes/s; required.
void ReadRate(ObjectReader& object, std::string_view key, BytesPerSecond& target);
/// The same where the key is there: whether it has set `target`.
bool ReadOptionalRate(ObjectReader& object, std::string_view key, BytesPerSecond& target);

}  // namespace dcsim
