#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace dcsim {

/// Writes plain values as Python's `pickle` does, in protocol 2: what is added in a dict is key,
/// value, key, value and so on; each element of a list is followed by Append. A text is written
/// once, however often it is added.
class Pickle {
 public:
  void Add(std::int64_t number);
  void Add(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void Add(std::string_view text);
  void Add(const char* text) { Add(std::string_view(text)); }
  void BeginDict() { bytes_ += "}("; }
  void EndDict() { bytes_ += 'u'; }
  void BeginList() { bytes_ += ']'; }
  void Append() { bytes_ += 'a'; }

  /// Names what was added last, so that Recall can add the same object again.
  std::size_t Remember();
  void Recall(std::size_t name);

  /// The whole file. Exactly one value must have been added.
  std::string Finish() && { return std::move(bytes_) + '.'; }

 private:
  void AddRaw(std::uint64_t number, int bytes);
  void AddName(std::size_t name, char of_byte, char of_four);

  std::string bytes_ = "\x80\x02";
  std::map<std::string, std::size_t, std::less<>> texts_;
  std::size_t names_ = 0;
};

}  // namespace dcsim
