#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "tools/common/load.h"

namespace dcsim {

/// The sizes of a micro-step that a what-if asks for; 0: those of the workload.
struct AskedSizes {
  std::int64_t batch = 0;     // sequences, or rows
  std::int64_t sequence = 0;  // tokens of a sequence
};

/// Declares --batch and --seq, as dcrecord calls them.
void DeclareSizes(CLI::App& app, AskedSizes& sizes);

/// The workload of a folder; where it has other sizes than asked for, the recording that has them,
/// from the folders beside it. Which one that is goes to `notes`.
///
/// A graph holds for its sizes only, so none is derived from another. A recording belongs to the
/// same model when its parameters and the recorder's options besides the sizes are the same. Throws
/// Error where there is none, with the sizes that are recorded and the command that records these.
Workload LoadWorkload(const std::string& folder,
                      const AskedSizes& sizes,
                      std::ostream& notes = std::cerr);

}  // namespace dcsim
