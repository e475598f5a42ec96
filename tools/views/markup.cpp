#include "tools/views/markup.h"

#include <array>
#include <utility>

namespace dcsim {
namespace {

constexpr std::array<std::pair<char, std::string_view>, 4> kEntities = {
    {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}};

}  // namespace

std::string EscapeMarkup(std::string_view text, std::string_view special) {
  std::string escaped(text);
  for (const auto& [character, entity] : kEntities) {  // & first: entities begin with it
    if (special.find(character) == std::string_view::npos) {
      continue;
    }
    for (std::size_t at = escaped.find(character); at != std::string::npos;
         at = escaped.find(character, at + entity.size())) {
      escaped.replace(at, 1, entity);
    }
  }
  return escaped;
}

}  // namespace dcsim
