#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/launch/rank_environment.h"

namespace c10d {
class TCPStore;
}

namespace dcsim::exec {

/// Where the ranks of a job exchange small things: NCCL's ids, results. c10d's TCPStore.
class Rendezvous {
 public:
  /// Joins; as the server where `address.serves`, which takes over `address.socket`. Throws
  /// SystemError when the store cannot be served (a port in use) or reached in time.
  Rendezvous(const RendezvousAddress& address, const RankIdentity& identity);
  ~Rendezvous();

  /// Port that the store listens on; the one asked for, or chosen by the system for 0.
  int port() const;

  void Set(const std::string& key, const std::string& value);
  /// Waits until the key is set.
  std::string Get(const std::string& key);
  /// Every rank's value, by rank. All ranks call it with the same key.
  std::vector<std::string> Exchange(const std::string& key, const std::string& own);
  /// The last call of every rank: nothing more will be asked. The server's returns when all ranks
  /// have called it, so that the store lives as long as somebody reads from it.
  void Finish();

 private:
  RankIdentity identity_;
  bool serves_;
  std::unique_ptr<c10d::TCPStore> store_;
};

}  // namespace dcsim::exec
