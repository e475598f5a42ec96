#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>

#include "model/base/units.h"

namespace dcsim {

/// A part of a whole, from 0 to 1, in whole thousandths. What is out of these bounds becomes the
/// nearer of them.
class Share {
 public:
  static constexpr std::int64_t kWhole = 1000;

  /// None of it.
  constexpr Share() = default;
  static constexpr Share All() { return FromPermille(kWhole); }
  static constexpr Share FromPermille(std::int64_t permille) {
    return Share(static_cast<std::int32_t>(std::clamp<std::int64_t>(permille, 0, kWhole)));
  }
  /// The nearest thousandth; `share` is a number.
  static Share Nearest(double share) {
    return FromPermille(std::lround(std::clamp(share, 0.0, 1.0) * kWhole));
  }
  /// The thousandth below; `share` is a number.
  static constexpr Share Below(double share) {
    return FromPermille(static_cast<std::int64_t>(kWhole * std::clamp(share, 0.0, 1.0)));
  }
  /// `part` of `whole` > 0, rounded down.
  static constexpr Share Of(std::int64_t part, std::int64_t whole) {
    return FromPermille(part * kWhole / whole);
  }

  constexpr std::int64_t permille() const { return permille_; }
  constexpr double number() const { return static_cast<double>(permille_) / kWhole; }
  /// This share of an amount >= 0, rounded down.
  constexpr std::int64_t PartOf(std::int64_t amount) const { return amount * permille_ / kWhole; }
  constexpr Share PartOf(Share share) const { return FromPermille(PartOf(share.permille())); }
  constexpr Share Rest() const { return FromPermille(kWhole - permille_); }

  constexpr auto operator<=>(const Share&) const = default;

 private:
  constexpr explicit Share(std::int32_t permille) : permille_(permille) {}
  std::int32_t permille_ = 0;
};

/// Speed beside others over speed alone: more than 0 and at most 1, in whole thousandths. There is
/// no other, so work that has begun always ends. What is out of these bounds becomes the nearer of
/// them.
class Rate {
 public:
  /// Work at speed 1 for a nanosecond is so much; amounts of work are multiples of it.
  static constexpr std::int64_t kWorkOfNs = 1000;

  /// The speed alone.
  constexpr Rate() = default;
  static constexpr Rate FromPermille(std::int64_t permille) {
    return Rate(static_cast<std::int32_t>(std::clamp<std::int64_t>(permille, 1, kWorkOfNs)));
  }
  /// The nearest thousandth; `rate` is a number.
  static Rate Nearest(double rate) {
    return FromPermille(std::lround(std::clamp(rate, 0.0, 1.0) * kWorkOfNs));
  }
  /// Of what takes `alone` ns alone and `beside` > 0 beside others, rounded down.
  static constexpr Rate Of(std::int64_t alone, std::int64_t beside) {
    return FromPermille(alone * kWorkOfNs / beside);
  }

  constexpr std::int64_t permille() const { return permille_; }
  constexpr bool alone() const { return permille_ == kWorkOfNs; }
  constexpr Share share() const { return Share::FromPermille(permille_); }

  /// Work that is done in `ns`.
  constexpr std::int64_t WorkIn(std::int64_t ns) const { return ns * permille_; }
  /// Nanoseconds until `work` >= 0 is done, rounded up.
  constexpr std::int64_t TimeFor(std::int64_t work) const { return DivideUp(work, permille_); }
  /// What takes `ns` alone takes so long, rounded down.
  constexpr std::int64_t Stretch(std::int64_t ns) const { return ns * kWorkOfNs / permille_; }
  /// Beside what takes that share of what all of it would take.
  constexpr Rate Beside(Share share) const {
    return FromPermille(kWorkOfNs - share.PartOf(kWorkOfNs - permille_));
  }

  constexpr auto operator<=>(const Rate&) const = default;

 private:
  constexpr explicit Rate(std::int32_t permille) : permille_(permille) {}
  std::int32_t permille_ = static_cast<std::int32_t>(kWorkOfNs);
};

}  // namespace dcsim
