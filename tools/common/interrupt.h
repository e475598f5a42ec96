#pragma once

namespace dcsim {

/// While one exists, the first SIGINT or SIGTERM only sets a flag, so that a command can stop at a
/// good place and write what it has; another one half a second later or more ends the process. What
/// comes sooner belongs to the first: timeout(1), srun and torchrun signal a process and its group.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  void (*old_interrupt_)(int);  // Python has handlers of its own
  void (*old_terminate_)(int);
};

}  // namespace dcsim
