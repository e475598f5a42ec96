#pragma once

#include "model/ir/document.h"
#include "model/ir/result.h"

namespace dcsim {

/// Reads what a comparison needs of a dc-result/1 document: outcome, times, peaks, collectives,
/// workload, plan (as a document) and GPUs. Fields that it does not know are left alone. Throws
/// Error with every fault.
Result ReadResult(const Json& document, const Locator& locate);

/// The `losses` in it: not a number where JSON has none, as it writes what is not finite; no losses
/// where there is no list.
std::vector<double> ReadLosses(const Json& list);

/// The `host`, the `waiting_ns` and the `segments_mib` of a rank in it.
HostReading ReadHostReading(const Json& value, const Path& path, Faults& faults);
WaitingDelays ReadWaitingDelays(const Json& value, const Path& path, Faults& faults);
std::vector<MeasuredSegment> ReadSegments(const Json& value, const Path& path, Faults& faults);

}  // namespace dcsim
