#include "exec/calibrate/joint_spans.h"

#include <algorithm>

#include "model/base/text.h"

namespace dcsim::exec {
namespace {

std::vector<std::int64_t> ParseNumbers(const std::string& text) {
  std::vector<std::int64_t> numbers;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    numbers.push_back(FindInteger(text.substr(start, end - start)).value_or(0));
    start = end + 1;
  }
  return numbers;
}

}  // namespace

std::int64_t JointTime(const std::vector<Span>& ranks) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  for (const Span& span : ranks) {
    start = std::max(start, span.start);
    end = std::max(end, span.end);
  }
  return end - start;
}

std::int64_t LongestTime(const std::vector<Span>& ranks) {
  std::int64_t longest = 0;
  for (const Span& span : ranks) {
    longest = std::max(longest, span.time());
  }
  return longest;
}

std::int64_t Skew(const std::vector<Span>& ranks) {
  const auto [first, last] = std::ranges::minmax_element(ranks, {}, &Span::start);
  return last->start - first->start;
}

std::vector<std::vector<std::int64_t>> ExchangeNumbers(Rendezvous& rendezvous,
                                                       const std::string& key,
                                                       const std::vector<std::int64_t>& own) {
  std::string text;
  for (const std::int64_t number : own) {
    text += (text.empty() ? "" : " ") + std::to_string(number);
  }
  std::vector<std::vector<std::int64_t>> all;
  for (const std::string& line : rendezvous.Exchange(key, text)) {
    all.push_back(ParseNumbers(line));
  }
  return all;
}

}  // namespace dcsim::exec
