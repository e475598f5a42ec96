#include "tools/common/config_path.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <optional>
#include <vector>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// Names in the folder of `path`, in order.
std::vector<std::string> Siblings(const fs::path& path) {
  std::vector<std::string> names;
  const fs::path parent = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "; known: a100, b200 or h100", the names of the files in the folder of `path`.
std::string NamesBeside(const fs::path& path) {
  std::vector<std::string> names = Siblings(path);
  for (std::string& name : names) {
    name = fs::path(name).stem().string();
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return names.empty() ? "" : "; known: " + JoinAlternatives(views);
}

/// A name with its numbers taken out.
struct NumberedName {
  std::string text;  // '#' for each number
  std::vector<double> numbers;
};

NumberedName Numbered(const std::string& name) {
  NumberedName found;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      found.text += name[i++];
      continue;
    }
    double number = 0;
    for (; i < name.size() && is_digit(name[i]); ++i) {
      number = number * 10 + (name[i] - '0');
    }
    found.text += '#';
    found.numbers.push_back(number);
  }
  return found;
}

/// Of names that differ from this one in their numbers alone, the one with the nearest numbers.
std::optional<std::string_view> NearestByNumber(const std::string& name,
                                                const std::vector<std::string>& candidates) {
  const NumberedName asked = Numbered(name);
  std::optional<std::string_view> nearest;
  double least = 0;
  for (const std::string& candidate : candidates) {
    const NumberedName other = Numbered(candidate);
    if (asked.numbers.empty() || other.text != asked.text) {
      continue;
    }
    double apart = 0;
    for (std::size_t i = 0; i < asked.numbers.size(); ++i) {
      apart += std::abs(std::log((1 + asked.numbers[i]) / (1 + other.numbers[i])));
    }
    if (!nearest || apart < least) {
      nearest = candidate;
      least = apart;
    }
  }
  return nearest;
}

/// The folder of the running program, or of the shared library that this code is in; empty where
/// the system does not say.
fs::path ProgramFolder() {
  std::error_code ignored;
  Dl_info info = {};
  const auto* here = reinterpret_cast<const void*>(&ProgramFolder);
  if (::dladdr(here, &info) != 0 && fs::path(info.dli_fname).extension() == ".so") {
    return fs::canonical(info.dli_fname, ignored).parent_path();
  }
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

std::string FindConfig(const std::string& name, const std::string& kind, const std::string& what) {
  const fs::path path(name);
  if (FileExists(name) || path.has_parent_path() || path.has_extension() || name.empty()) {
    return name;
  }
  const fs::path file = fs::path("configs") / kind / (name + ".yaml");
  std::vector<fs::path> folders = {""};
  for (fs::path folder = ProgramFolder(); folder.has_relative_path();
       folder = folder.parent_path()) {
    folders.push_back(folder);
  }
  for (const fs::path& folder : folders) {
    if (FileExists((folder / file).string())) {
      return (folder / file).string();
    }
  }
  std::string hint = DidYouMeanFile(name);
  std::string own;
  for (const fs::path& folder : folders) {
    hint = hint.empty() ? DidYouMeanFile((folder / file).string()) : hint;
    own = own.empty() ? NamesBeside(folder / file) : own;
  }
  throw Error(name + ": no such " + what + (hint.empty() ? own : hint));
}

std::string DidYouMeanFile(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  const fs::path named = clean.filename().empty() ? clean.parent_path() : clean;
  const std::vector<std::string> names = Siblings(named);
  for (const std::string& asked :
       {named.filename().string(), named.filename().string() + ".yaml"}) {
    const std::vector<std::string_view> views(names.begin(), names.end());
    auto nearest = NearestByNumber(asked, names);
    nearest = nearest ? nearest : FindNearestName(asked, views);
    if (nearest) {
      return ", did you mean '" + std::string(*nearest) + "'?";
    }
  }
  return "";
}

}  // namespace dcsim
