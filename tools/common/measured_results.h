#pragma once

#include <functional>
#include <string>

#include "model/ir/document.h"
#include "model/ir/result.h"

namespace dcsim {

/// A dc-result/1 document, and where it is from: its file, or "PACK:NAME".
struct MeasuredDocument {
  std::string source;
  Json document;
};

/// The result in it (ReadResult). Throws Error with its source for anything but a measured one.
Result ReadMeasured(const MeasuredDocument& measured);

/// Visits the results that `path` names, those of a folder in the order of their files:
///
///   zero3.json, zero3.json.gz   a result as `dc-run` writes it
///   h200-4.jsonl.xz             a pack of results (docs/reference/formats.md), in its order
///   h200-4.jsonl.xz:zero3       one result of a pack
///   h200-4                      a folder of results and packs, timelines left out
///
/// Throws Error where there is none, for a broken line of a pack, and for a name that a pack does
/// not hold, with the nearest that it does.
void ForEachMeasured(const std::string& path, const std::function<void(MeasuredDocument)>& visit);

}  // namespace dcsim
