#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/launch/rendezvous.h"

namespace dcsim::exec {

/// Of kernels, in ns on the clock of the machine's kernel records.
struct Span {
  std::int64_t start = 0;
  std::int64_t end = 0;

  std::int64_t time() const { return end - start; }
};

/// Time of work in which ranks wait for each other: from the last one's start to the last end, ns.
std::int64_t JointTime(const std::vector<Span>& ranks);

/// Time of work in which no rank waits for another: of the slowest, ns.
std::int64_t LongestTime(const std::vector<Span>& ranks);

/// From the first rank's start to the last one's, ns.
std::int64_t Skew(const std::vector<Span>& ranks);

/// Every rank's numbers, by rank. All ranks call it with the same key.
std::vector<std::vector<std::int64_t>> ExchangeNumbers(Rendezvous& rendezvous,
                                                       const std::string& key,
                                                       const std::vector<std::int64_t>& own);

}  // namespace dcsim::exec
