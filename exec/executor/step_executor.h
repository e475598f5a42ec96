#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/communicator/communicator.h"
#include "exec/device/side_streams.h"
#include "exec/device/streams.h"
#include "exec/interpreter/op_program.h"
#include "model/graph/param_layout.h"
#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/ir/waiting_delays.h"

namespace dcsim::exec {

/// AdamW as the reference training fixes it (docs/reference/formats.md, dc-reference/1).
struct AdamW {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

/// What one rank executes a schedule with.
struct RankSetup {
  const Graph& graph;
  const Schedule& schedule;
  c10::Device device;
  std::vector<Communicator*> communicators;  // by Collective::communicator; one entry serves all
  std::uint64_t seed = 0;
  AdamW optimizer;
  SideStreams side_streams = SideStreams::kQuiet;
  const KernelBinaries* binaries = nullptr;  // as OpProgram
};

/// Told what the host does, task by task; the profiler and the tests listen.
class TaskListener {
 public:
  TaskListener() = default;
  TaskListener(const TaskListener&) = delete;
  TaskListener& operator=(const TaskListener&) = delete;
  virtual ~TaskListener() = default;

  virtual void BeforeTask(TaskId) {}
  virtual void AfterTask(TaskId) {}
};

/// What a rank has of a trained parameter: its elements from `begin` on.
struct OwnedElements {
  ParamId param;
  std::int64_t begin = 0;
  at::Tensor elements;  // flat
};

/// One rank of a job: weights, optimizer states and streams, and the loop that interprets a
/// schedule step after step. Construction builds only this rank's part of the weights.
class StepExecutor {
 public:
  explicit StepExecutor(const RankSetup& setup);
  ~StepExecutor();

  /// Makes the inputs of steps [first, first + count) ahead of time, so that steps take as long as
  /// with a data loader that keeps up. Steps without prepared inputs make their own.
  void PrepareInputs(int first, int count);

  /// Runs one optimizer step on the reference inputs of step number `step`. The host runs ahead of
  /// the GPU as in training.
  ///
  /// Throws c10::OutOfMemoryError when the device has no memory left; `current_task` tells where.
  void RunStep(int step);
  TaskId current_task() const;

  /// Losses of the last step's micro-steps; waits for the GPU.
  std::vector<double> losses();
  /// This rank's part of the gradients of the last step, in float32: what tests compare. Kept only
  /// when asked for before the step.
  void KeepGradients(bool keep);
  std::vector<OwnedElements> kept_gradients() const;
  /// This rank's part of the master weights.
  std::vector<OwnedElements> master_weights() const;
  int rank() const;

  /// How much later each kernel of compute starts while a stream waits for an event, by stream; 0
  /// for streams without tasks, and on the CPU. The device is idle before and after.
  WaitingDelays waiting_delays() const;

  /// Leaves peers' memory; all ranks call it, before any of them ends. No step may follow.
  void Close();

  void Listen(TaskListener* listener);
  void Synchronize();

  struct State;  // executor_state.h

 private:
  std::unique_ptr<State> state_;
};

}  // namespace dcsim::exec
