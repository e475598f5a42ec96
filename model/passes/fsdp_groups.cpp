#include "model/passes/fsdp_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"

namespace dcsim {
namespace {

/// Every module that holds a parameter of this name, outermost first: "a", "a.b" of "a.b.weight".
std::vector<std::string> ModulesOf(const std::string& param) {
  std::vector<std::string> modules;
  for (std::size_t dot = param.find('.'); dot != std::string::npos;
       dot = param.find('.', dot + 1)) {
    modules.push_back(param.substr(0, dot));
  }
  return modules;
}

/// The names by which a model knows a parameter.
std::vector<std::string> NamesOf(const Param& param) {
  std::vector<std::string> names = param.tied;
  names.insert(names.begin(), param.name);
  return names;
}

std::set<std::string> AllModules(const Graph& graph) {
  std::set<std::string> modules;
  for (const Param& param : graph.params) {
    for (const std::string& name : NamesOf(param)) {
      const auto of = ModulesOf(name);
      modules.insert(of.begin(), of.end());
    }
  }
  return modules;
}

/// "layers" of "layers.3", "" for a module that is no child of a list.
std::string ListOf(const std::string& module) {
  const std::size_t dot = module.rfind('.');
  const std::string last = module.substr(dot == std::string::npos ? 0 : dot + 1);
  const bool number = last.find_first_not_of("0123456789") == std::string::npos;
  return number && dot != std::string::npos ? module.substr(0, dot) : "";
}

/// The children of every list of two modules or more that lies in no other such list.
std::set<std::string> FindBlocks(const std::set<std::string>& modules) {
  std::map<std::string, std::size_t> children;
  for (const std::string& module : modules) {
    ++children[ListOf(module)];
  }
  const auto is_block = [&](const std::string& module) {
    const std::string list = ListOf(module);
    return !list.empty() && children[list] > 1;
  };
  std::set<std::string> blocks;
  for (const std::string& module : modules) {
    const auto around = ModulesOf(module);
    if (is_block(module) && std::none_of(around.begin(), around.end(), is_block)) {
      blocks.insert(module);
    }
  }
  return blocks;
}

/// Whether a module's name is that of the pattern, in which '*' stands for a part between dots.
bool MatchesModule(std::string_view pattern, std::string_view name) {
  while (!pattern.empty() && !name.empty()) {
    if (pattern.front() == '*') {
      pattern.remove_prefix(1);
      name.remove_prefix(std::min(name.find('.'), name.size()));
    } else if (pattern.front() == name.front()) {
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    } else {
      return false;
    }
  }
  return pattern.empty() && name.empty();
}

std::set<std::string> FindWrapped(const std::set<std::string>& modules,
                                  const std::vector<std::string>& wrap) {
  if (wrap.empty()) {
    return FindBlocks(modules);
  }
  std::set<std::string> wrapped;
  for (const std::string& pattern : wrap) {
    const std::size_t before = wrapped.size();
    std::copy_if(modules.begin(), modules.end(), std::inserter(wrapped, wrapped.end()),
                 [&](const std::string& module) { return MatchesModule(pattern, module); });
    if (wrapped.size() == before) {
      const std::vector<std::string_view> known(modules.begin(), modules.end());
      throw Error("plan: wrap: no module with parameters is called '" + pattern + "'" +
                  DidYouMean(pattern, known) + "; '*' stands for one part between dots");
    }
  }
  return wrapped;
}

/// The innermost wrapped module that holds a parameter, or "".
std::string OwnerOf(const Param& param, const std::set<std::string>& wrapped) {
  for (const std::string& name : NamesOf(param)) {
    const auto modules = ModulesOf(name);
    const auto found = std::find_if(modules.rbegin(), modules.rend(),
                                    [&](const auto& module) { return wrapped.contains(module); });
    if (found != modules.rend()) {
      return *found;
    }
  }
  return "";
}

}  // namespace

std::vector<ParamGroup> FindParamGroups(const Graph& graph, const std::vector<std::string>& wrap) {
  const auto wrapped = FindWrapped(AllModules(graph), wrap);
  std::vector<ParamGroup> groups;
  ParamGroup root;
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const std::string owner = OwnerOf(graph.params[i], wrapped);
    if (owner.empty()) {
      root.params.emplace_back(i);
      continue;
    }
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const ParamGroup& group) { return group.module == owner; });
    if (found == groups.end()) {
      groups.push_back({owner, {}});
      found = groups.end() - 1;
    }
    found->params.emplace_back(i);
  }
  if (!root.params.empty()) {
    groups.push_back(std::move(root));
  }
  return groups;
}

}  // namespace dcsim
