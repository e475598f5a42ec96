#pragma once

#include <string>
#include <vector>

#include "tools/common/step_variants.h"

namespace dcsim {

/// One step of a sweep.
struct SweepRow {
  std::vector<std::string> values;  // of the keys, as they were given
  PredictedVariant predicted;
};

/// Steps side by side.
struct SweepReport {
  std::string title;              // what all rows share
  std::vector<std::string> keys;  // what sets rows apart
  std::vector<SweepRow> rows;
};

/// A table that a person reads, a row a step, and the row with the most tokens a second and GPU of
/// those that fit.
std::string PrintSweepText(const SweepReport& report);

/// The same rows for spreadsheets (RFC 4180): integer nanoseconds and bytes; an empty cell is
/// unknown.
std::string PrintSweepCsv(const SweepReport& report);

/// dc-sweep/1 (docs/reference/formats.md), each row with its whole result.
Json PrintSweep(const SweepReport& report);

/// Verdict of a result in words: "fits", "may run out of memory", "does not fit", "deadlock".
std::string VerdictWords(const Result& result);

}  // namespace dcsim
