#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace dcsim::exec {

/// The collectives of one communicator, as one rank calls them. All ranks make the same calls in
/// the same order. On a GPU calls are put on the current CUDA stream; on the CPU they are done when
/// they return. Tensors are contiguous and of one dtype.
///
/// Errors: SystemError naming call, rank and cause, also when another rank has failed.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// `gathered` [size * n] gets every rank's `shard` [n], by rank. `shard` may be the own part of
  /// it.
  virtual void AllGather(const at::Tensor& shard, const at::Tensor& gathered) = 0;
  /// `shard` [n] gets the sum over ranks of part `rank` of `whole` [size * n].
  virtual void ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) = 0;
  /// The same with the mean, of floating-point numbers.
  virtual void ReduceScatterMean(const at::Tensor& whole, const at::Tensor& shard) = 0;
  /// `tensor` becomes the sum over ranks.
  virtual void AllReduce(const at::Tensor& tensor) = 0;

  /// Every rank's `own` tensor, by rank, readable through peer memory until `ClosePeers`. All ranks
  /// call it with tensors of one shape. What peers write is seen behind a collective that follows
  /// the write on their side and precedes the read on this one.
  virtual std::vector<at::Tensor> OpenPeers(const at::Tensor& own) = 0;
  /// Returns once no rank reads peers' tensors any more: they may be freed.
  virtual void ClosePeers(std::vector<at::Tensor> peers) = 0;

  /// Calls between these are launched together.
  virtual void StartGroup() {}
  virtual void EndGroup() {}

  /// Wakes ranks that wait for this one, because it fails.
  virtual void Abort(const std::string& reason) = 0;
};

}  // namespace dcsim::exec
