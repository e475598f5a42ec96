#include "tests/support/json_mutation.h"

#include <array>
#include <vector>

namespace dcsim {
namespace {

/// Every value of a document, itself first.
void Collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured()) {
    for (Json& child : value) {
      Collect(child, all);
    }
  }
}

Json StrangeValue(std::mt19937_64& random) {
  const std::array<Json, 16> kValues = {nullptr,
                                        true,
                                        0,
                                        -1,
                                        1.5,
                                        1e308,
                                        INT64_MAX,
                                        INT64_MIN,
                                        UINT64_MAX,
                                        "",
                                        "x",
                                        "../../x",
                                        Json::array(),
                                        Json::object(),
                                        Json::array({1, "x"}),
                                        Json{{"x", 1}}};
  return kValues[Below(random, kValues.size())];
}

void LeaveOutOrDouble(Json& value, std::mt19937_64& random) {
  if (value.is_array()) {
    const std::size_t at = Below(random, value.size());
    if (Below(random, 2) == 0) {
      value.erase(at);
    } else {
      value.push_back(value[at]);
    }
    return;
  }
  auto entry = value.begin();
  std::advance(entry, static_cast<std::ptrdiff_t>(Below(random, value.size())));
  const std::string key = entry.key();
  const Json copy = entry.value();
  value.erase(key);
  if (Below(random, 2) == 0) {
    value[key + "s"] = copy;
  }
}

}  // namespace

std::size_t Below(std::mt19937_64& random, std::size_t count) {
  return static_cast<std::size_t>(random() % count);
}

Json MutateJson(Json document, std::mt19937_64& random) {
  std::vector<Json*> all;
  Collect(document, all);
  Json& chosen = *all[Below(random, all.size())];
  if (chosen.is_structured() && !chosen.empty() && Below(random, 3) > 0) {
    LeaveOutOrDouble(chosen, random);
  } else {
    chosen = StrangeValue(random);
  }
  return document;
}

std::string MutateText(std::string text, std::mt19937_64& random) {
  for (std::size_t i = 0; i <= Below(random, 3) && !text.empty(); ++i) {
    const std::size_t at = Below(random, text.size());
    const std::size_t length = 1 + Below(random, 8);
    switch (Below(random, 3)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text[at] = static_cast<char>(Below(random, 256));
        break;
      default:
        text.insert(at, text.substr(at, length));
    }
  }
  return text;
}

}  // namespace dcsim
