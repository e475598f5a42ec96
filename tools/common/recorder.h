#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dcsim {

/// Path of dcrecord, looked for as a shell does; nothing where it is not installed.
std::optional<std::string> FindRecorder();

/// Runs `python -m dcrecord WORDS...` as `recorder WORDS...`, without a shell, and waits for it.
/// What it prints is kept back. Returns "" or, where it fails, the last line that it printed.
///
///   words   of a command as a graph's notes have it
std::string RunRecorder(const std::string& recorder, const std::vector<std::string>& words);

}  // namespace dcsim
