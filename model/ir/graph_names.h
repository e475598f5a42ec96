#pragma once

#include <array>
#include <string_view>

namespace dcsim {

// Names of the enumerators of model/ir/graph.h in the JSON and text forms, in enumerator order.
inline constexpr std::array<std::string_view, 2> kDirectionNames = {"forward", "backward"};
inline constexpr std::array<std::string_view, 6> kGraphInputKindNames = {
    "param", "buffer", "input", "saved", "tangent", "activation"};
inline constexpr std::array<std::string_view, 5> kGraphOutputKindNames = {"loss", "output", "saved",
                                                                          "gradient", "tangent"};
inline constexpr std::array<std::string_view, 3> kKernelKindNames = {"pointwise", "reduction",
                                                                     "persistent_reduction"};
inline constexpr std::array<std::string_view, 2> kFillKindNames = {"tokens", "uniform"};

}  // namespace dcsim
