#include "sim/search/param_roles.h"

#include <cctype>
#include <map>
#include <string>

namespace dcsim {
namespace {

/// "model.layers.17.mlp.up_proj.weight" -> "model.layers.#.mlp.up_proj.weight".
std::string RoleName(const std::string& name) {
  std::string role;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      role += c;
    } else if (role.empty() || role.back() != '#') {
      role += '#';
    }
  }
  return role;
}

}  // namespace

std::vector<std::uint32_t> ParamRoles(const Graph& graph) {
  std::map<std::string, std::uint32_t> ids;
  std::vector<std::uint32_t> roles;
  for (const Param& param : graph.params) {
    const auto next = static_cast<std::uint32_t>(ids.size());
    roles.push_back(ids.emplace(RoleName(param.name), next).first->second);
  }
  return roles;
}

}  // namespace dcsim
