#include "exec/communicator/run_collective.h"

namespace dcsim::exec {

void RunCollective(Communicator& communicator,
                   CollectiveKind kind,
                   const at::Tensor& whole,
                   const at::Tensor& shard) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return communicator.AllGather(shard, whole);
    case CollectiveKind::kReduceScatter:
      return communicator.ReduceScatter(whole, shard);
    case CollectiveKind::kAllReduce:
      return communicator.AllReduce(whole);
  }
}

}  // namespace dcsim::exec
