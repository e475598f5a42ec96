#include "model/ir/name_reader.h"

#include <algorithm>

namespace dcsim {

std::optional<std::string> ReadName(const Json& value, const Path& path, Faults& faults) {
  constexpr std::size_t kMostLetters = 200;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  auto name = ReadString(value, path, faults);
  if (!name) {
    return std::nullopt;
  }
  const bool fits = !name->empty() && name->size() <= kMostLetters && name->front() != '.' &&
                    name->find_first_not_of(kLetters) == std::string::npos;
  if (!fits) {
    faults.Add(path,
               "expected a name of 1 to 200 letters, digits, '.', '-' or '_' that begins "
               "with no '.', found '" +
                   name->substr(0, std::min<std::size_t>(name->size(), 60)) + "'");
    return std::nullopt;
  }
  return name;
}

}  // namespace dcsim
