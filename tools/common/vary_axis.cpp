#include "tools/common/vary_axis.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/plan_reader.h"

namespace dcsim {
namespace {

constexpr std::string_view kClusterPrefix = "cluster.";
constexpr std::array<std::string_view, 3> kCounts = {"batch", "seq", "gpus"};

bool IsCount(const std::string& key) {
  return std::find(kCounts.begin(), kCounts.end(), key) != kCounts.end();
}

/// Keys of plan specs, by their printer, which knows them all.
std::vector<std::string> PlanKeys() {
  std::vector<std::string> keys;
  const Json printed = PrintPlanSpec(PlanSpec());
  for (const auto& [key, value] : printed.items()) {
    if (key != "format") {
      keys.push_back(key);
    }
  }
  return keys;
}

void RequireKnown(const std::string& key, const std::string& text) {
  if (key.starts_with(kClusterPrefix) && key.size() > kClusterPrefix.size()) {
    return;  // its reader knows the fields
  }
  std::vector<std::string> known = PlanKeys();
  known.insert(known.begin(), {"batch", "seq", "gpus", "cluster"});
  if (std::find(known.begin(), known.end(), key) != known.end()) {
    return;
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string nearest = DidYouMean(key, names);
  throw Error("--vary " + text + ": unknown key '" + key + "'" +
              (nearest.empty() ? "; expected batch, seq, gpus, cluster, cluster.KEY for a key of "
                                 "--cluster-set, or a key of --set"
                               : nearest));
}

/// Without blanks around it.
std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<std::string> SplitValues(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += static_cast<int>(c == '[' || c == '{') - static_cast<int>(c == ']' || c == '}');
    }
    if (c == ',' && depth <= 0 && quote == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  std::transform(values.begin(), values.end(), values.begin(), Trimmed);
  return values;
}

void RequireCount(const std::string& value, const std::string& text) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto count = FindInteger(value);
  if (!count || *count < 1 || *count > kMost) {
    throw Error("--vary " + text + ": expected whole numbers from 1 to 1000000000, found '" +
                value + "'");
  }
}

VaryAxis ParseAxis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error("--vary " + text + ": expected key=values, such as batch=1,2,4");
  }
  VaryAxis axis{Trimmed(text.substr(0, equals)), SplitValues(text.substr(equals + 1))};
  RequireKnown(axis.key, text);
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    const std::string& value = axis.values[i];
    if (value.empty()) {
      throw Error("--vary " + text + ": expected a value between commas, found an empty text");
    }
    if (IsCount(axis.key)) {
      RequireCount(value, text);
    }
    if (std::find(axis.values.begin(), axis.values.begin() + static_cast<std::ptrdiff_t>(i),
                  value) != axis.values.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error("--vary " + text + ": holds '" + std::string(value).append("' twice"));
    }
  }
  return axis;
}

/// Whether one of "key=value" texts has the key.
bool Holds(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& each) { return each.starts_with(key + "="); });
}

/// The option that gives the axis's key already, or "".
std::string GivenBy(const std::string& key, const StepOptions& base) {
  if (key.starts_with(kClusterPrefix)) {
    return Holds(base.cluster_overrides, key.substr(kClusterPrefix.size())) ? "--cluster-set" : "";
  }
  const bool given =
      (key == "batch" && base.sizes.batch != 0) || (key == "seq" && base.sizes.sequence != 0) ||
      (key == "gpus" && base.gpus != 0) || (key == "cluster" && !base.cluster.empty());
  return given ? "--" + key : Holds(base.overrides, key) ? "--set" : "";
}

}  // namespace

std::vector<VaryAxis> ParseAxes(const std::vector<std::string>& texts) {
  std::vector<VaryAxis> axes;
  for (const std::string& text : texts) {
    VaryAxis axis = ParseAxis(text);
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const VaryAxis& other) { return other.key == axis.key; })) {
      throw Error("--vary " + text + ": " + axis.key + " is varied twice; give all values at once");
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

void RejectDoubleAxes(const std::vector<VaryAxis>& axes, const StepOptions& base) {
  for (const VaryAxis& axis : axes) {
    const std::string option = GivenBy(axis.key, base);
    if (!option.empty()) {
      throw Error("--vary " + axis.key + ": " + option +
                  " gives it one value already; leave one of "
                  "them out");
    }
  }
}

void SetAxis(const VaryAxis& axis, const std::string& value, StepOptions& options) {
  if (axis.key == "batch") {
    options.sizes.batch = FindInteger(value).value();
  } else if (axis.key == "seq") {
    options.sizes.sequence = FindInteger(value).value();
  } else if (axis.key == "gpus") {
    options.gpus = static_cast<int>(FindInteger(value).value());
  } else if (axis.key == "cluster") {
    options.cluster = value;
  } else if (axis.key.starts_with(kClusterPrefix)) {
    options.cluster_overrides.push_back(axis.key.substr(kClusterPrefix.size()) + "=" + value);
  } else {
    options.overrides.push_back(axis.key + "=" + value);
  }
}

}  // namespace dcsim
