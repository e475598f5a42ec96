#include "exec/launch/rendezvous.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "model/base/error.h"

namespace dcsim::exec {

Rendezvous::Rendezvous(const RendezvousAddress& address, const RankIdentity& identity)
    : identity_(identity),
      serves_(address.serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(address.port);
  options.isServer = address.serves;
  options.masterListenFd = address.socket;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(60);
  try {
    store_ = std::make_unique<c10d::TCPStore>(address.host, options);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw SystemError("rank " + std::to_string(identity.rank) + ": cannot " +
                      (address.serves ? "serve" : "reach") + " the store at " + address.host + ":" +
                      std::to_string(address.port) + ": " + text.substr(0, text.find('\n')));
  }
}

Rendezvous::~Rendezvous() = default;

int Rendezvous::port() const {
  return store_->getPort();
}

void Rendezvous::Set(const std::string& key, const std::string& value) {
  store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string Rendezvous::Get(const std::string& key) {
  try {
    const auto value = store_->get(key);
    return {value.begin(), value.end()};
  } catch (const std::exception& error) {
    throw SystemError("rank " + std::to_string(identity_.rank) + ": no '" + key +
                      "' from the other ranks in time");
  }
}

std::vector<std::string> Rendezvous::Exchange(const std::string& key, const std::string& own) {
  Set(key + "/" + std::to_string(identity_.rank), own);
  std::vector<std::string> all;
  for (int rank = 0; rank < identity_.size; ++rank) {
    all.push_back(Get(key + "/" + std::to_string(rank)));
  }
  return all;
}

void Rendezvous::Finish() {
  Set("finished/" + std::to_string(identity_.rank), "");
  for (int rank = 0; serves_ && rank < identity_.size; ++rank) {
    Get("finished/" + std::to_string(rank));
  }
}

}  // namespace dcsim::exec
