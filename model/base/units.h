#pragma once

#include <compare>
#include <cstdint>

namespace dcsim {

/// A span of time in whole nanoseconds. Signed, so that differences are representable.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration FromNs(std::int64_t ns) { return Duration(ns); }
  static constexpr Duration FromUs(std::int64_t us) { return Duration(us * 1000); }
  static constexpr Duration FromMs(std::int64_t ms) { return Duration(ms * 1'000'000); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr double us() const { return static_cast<double>(ns_) * 1e-3; }
  constexpr double ms() const { return static_cast<double>(ns_) * 1e-6; }
  constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration other) const { return Duration(ns_ + other.ns_); }
  constexpr Duration operator-(Duration other) const { return Duration(ns_ - other.ns_); }
  constexpr Duration operator*(std::int64_t factor) const { return Duration(ns_ * factor); }
  constexpr Duration& operator+=(Duration other) {
    ns_ += other.ns_;
    return *this;
  }

 private:
  constexpr explicit Duration(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// A point in simulated or measured time: nanoseconds since the start of the run.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime FromNs(std::int64_t ns) {
    SimTime time;
    time.ns_ = ns;
    return time;
  }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr auto operator<=>(const SimTime&) const = default;
  constexpr SimTime operator+(Duration span) const { return FromNs(ns_ + span.ns()); }
  constexpr Duration operator-(SimTime other) const { return Duration::FromNs(ns_ - other.ns_); }

 private:
  std::int64_t ns_ = 0;
};

/// An amount of memory or of data on a wire, in whole bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}
  static constexpr Bytes KiB(std::int64_t count) { return Bytes(count << 10); }
  static constexpr Bytes MiB(std::int64_t count) { return Bytes(count << 20); }
  static constexpr Bytes GiB(std::int64_t count) { return Bytes(count << 30); }

  constexpr std::int64_t count() const { return count_; }
  constexpr double gib() const { return static_cast<double>(count_) / (1024.0 * 1024.0 * 1024.0); }
  constexpr double mib() const { return static_cast<double>(count_) / (1024.0 * 1024.0); }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return Bytes(count_ + other.count_); }
  constexpr Bytes operator-(Bytes other) const { return Bytes(count_ - other.count_); }
  constexpr Bytes operator*(std::int64_t factor) const { return Bytes(count_ * factor); }
  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }

 private:
  std::int64_t count_ = 0;
};

/// A rate of data, in bytes per second (GB/s = 1e9 bytes per second).
class BytesPerSecond {
 public:
  constexpr BytesPerSecond() = default;
  constexpr explicit BytesPerSecond(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }
  constexpr double gb_per_s() const { return static_cast<double>(count_) * 1e-9; }
  constexpr auto operator<=>(const BytesPerSecond&) const = default;

 private:
  std::int64_t count_ = 0;
};

/// Whatever is computed to take longer takes so long, 11 days: hundreds of such spans add up
/// without overflow, and no step may take as long (EstimateWorks).
constexpr Duration kLongest = Duration::FromMs(1'000'000'000);

/// Up to the next whole nanosecond, kLongest at most; that of no number, too.
constexpr Duration RoundedUpNs(double ns) {
  if (!(ns < static_cast<double>(kLongest.ns()))) {
    return kLongest;
  }
  if (ns < -static_cast<double>(kLongest.ns())) {
    return kLongest * -1;
  }
  const auto whole = static_cast<std::int64_t>(ns);
  return Duration::FromNs(static_cast<double>(whole) < ns ? whole + 1 : whole);
}

/// Time to move `bytes` at `rate`, rounded up to whole nanoseconds; kLongest at most. `rate` must
/// be positive. The product bytes * 1e9 exceeds 64 bits above 9.2 GB, hence the division in double;
/// its relative error of 1e-16 is below one nanosecond.
constexpr Duration TransferTime(Bytes bytes, BytesPerSecond rate) {
  return RoundedUpNs(static_cast<double>(bytes.count()) * 1e9 / static_cast<double>(rate.count()));
}

/// How many parts of `part` hold `value` >= 0. `part` must be positive.
constexpr std::int64_t DivideUp(std::int64_t value, std::int64_t part) {
  return (value + part - 1) / part;
}

/// Smallest multiple of `granule` that is >= `value`. `granule` must be positive.
constexpr std::int64_t RoundUp(std::int64_t value, std::int64_t granule) {
  return DivideUp(value, granule) * granule;
}

}  // namespace dcsim
