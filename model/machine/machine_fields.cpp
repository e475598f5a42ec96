#include "model/machine/machine_fields.h"

namespace dcsim {
namespace {

/// A quantity of at most `most`.
template <typename T>
std::optional<T> AtMost(
    std::optional<T> value, T most, const char* expected, const Path& path, Faults& faults) {
  if (value && *value > most) {
    faults.Add(path, expected);
    return std::nullopt;
  }
  return value;
}

std::optional<BytesPerSecond> ReadAnyRate(const Json& value, const Path& path, Faults& faults) {
  constexpr BytesPerSecond kMost(1'000'000'000'000'000'000);
  return AtMost(ReadBytesPerSecond(value, path, faults), kMost, "expected at most 1000000 TB/s",
                path, faults);
}

}  // namespace

std::optional<Duration> ReadTime(const Json& value, const Path& path, Faults& faults) {
  return AtMost(ReadDuration(value, path, faults), Duration::FromMs(1'000), "expected at most 1 s",
                path, faults);
}

std::optional<Duration> ReadLongTime(const Json& value, const Path& path, Faults& faults) {
  return AtMost(ReadDuration(value, path, faults), Duration::FromMs(3'600'000),
                "expected at most 3600 s", path, faults);
}

std::optional<Bytes> ReadSize(const Json& value, const Path& path, Faults& faults) {
  return AtMost(ReadBytes(value, path, faults), Bytes(std::int64_t{1} << 60),
                "expected at most 1048576 TiB", path, faults);
}

void CheckPositive(ObjectReader& object, std::string_view key, double value) {
  if (object.Find(key) != nullptr && !(value > 0)) {
    object.faults().Add(object.At(key), "expected more than 0");
  }
}

void ReadCount(ObjectReader& object, std::string_view key, int& target) {
  std::int64_t count = 0;
  if (!object.Required(key, ReadInteger, count)) {
    return;
  }
  if (count < 1 || count > kMostCount) {
    object.faults().Add(object.At(key), "expected a count from 1 to 1000000");
    return;
  }
  target = static_cast<int>(count);
}

void ReadOptionalCount(ObjectReader& object, std::string_view key, int& target) {
  if (object.Find(key) != nullptr) {
    ReadCount(object, key, target);
  }
}

void ReadRate(ObjectReader& object, std::string_view key, BytesPerSecond& target) {
  if (object.Required(key, ReadAnyRate, target)) {
    CheckPositive(object, key, static_cast<double>(target.count()));
  }
}

bool ReadOptionalRate(ObjectReader& object, std::string_view key, BytesPerSecond& target) {
  const bool found = object.Optional(key, ReadAnyRate, target);
  if (found) {
    CheckPositive(object, key, static_cast<double>(target.count()));
  }
  return found;
}

void ReadShare(ObjectReader& object, std::string_view key, double& target) {
  if (object.Required(key, ReadNumber, target) && !(target > 0 && target <= 1)) {
    object.faults().Add(object.At(key), "expected a share above 0 and up to 1");
  }
}

void ReadPositive(ObjectReader& fields, std::string_view key, double& target) {
  if (fields.Required(key, ReadNumber, target)) {
    CheckPositive(fields, key, target);
  }
}

}  // namespace dcsim
