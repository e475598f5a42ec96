#pragma once

namespace dcsim {

/// While one exists, the first SIGINT or SIGTERM only sets a flag, so that a command can stop at a
/// good place and write what it has; the second ends the process.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace dcsim
