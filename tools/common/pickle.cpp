#include "tools/common/pickle.h"

#include <limits>

namespace dcsim {

void Pickle::AddRaw(std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    bytes_ += static_cast<char>(number >> (8 * i) & 0xFFU);
  }
}

void Pickle::Add(std::int64_t number) {
  const bool is_short = number >= std::numeric_limits<std::int32_t>::min() &&
                        number <= std::numeric_limits<std::int32_t>::max();
  bytes_ += is_short ? "J" : "\x8a\x08";
  AddRaw(static_cast<std::uint64_t>(number), is_short ? 4 : 8);
}

void Pickle::Add(std::string_view text) {
  if (const auto known = texts_.find(text); known != texts_.end()) {
    Recall(known->second);
    return;
  }
  bytes_ += 'X';
  AddRaw(text.size(), 4);
  bytes_ += text;
  texts_.emplace(text, Remember());
}

std::size_t Pickle::Remember() {
  AddName(names_, 'q', 'r');
  return names_++;
}

void Pickle::Recall(std::size_t name) {
  AddName(name, 'h', 'j');
}

void Pickle::AddName(std::size_t name, char of_byte, char of_four) {
  const bool is_byte = name < 256;
  bytes_ += is_byte ? of_byte : of_four;
  AddRaw(name, is_byte ? 1 : 4);
}

}  // namespace dcsim
