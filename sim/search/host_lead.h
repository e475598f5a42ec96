#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/machine/contention.h"

namespace dcsim {

/// How far the host is ahead of the GPU where a folded run's second step begins. The run begins
/// with the end of a step, behind a wait of the host, and as if ranks had gone on together there.
/// Behind that wait the first collective that compute waits for takes longer the longer ranks have
/// not gone on together (Contention::IdleWait), so in a real step the host is further ahead behind
/// it than in the run's first. This finds out whether that changes the second step, and what the
/// run has to begin with for both to be alike.
class HostLead {
 public:
  /// Such a collective starts.
  ///
  ///   position      in its step, with the stream told apart
  ///   in_first      of the run's steps
  ///   since         ranks last went on together
  ///   waits_over    waits of the host that are over
  void NoteIdleWait(std::size_t position,
                    bool in_first,
                    std::int64_t now,
                    std::int64_t since,
                    std::size_t waits_over) {
    if (in_first) {
      first_ = first_ ? first_ : Idle{position, now, since, waits_over};
    } else if (first_ && first_->position == position) {
      last_since_ = since;
    }
  }

  /// Something starts, or a wait of the host ends, when the host is there and not when the GPU is.
  void HostDecides(std::size_t waits_over) {
    decides_ = decides_ || (first_ && first_->waits_over == waits_over);
  }

  /// When ranks should have gone on together before the run begins, for its steps to be alike.
  /// None where nothing depends on it: the collective takes what it did, or the host is only
  /// further ahead, and decided nothing until it waited next.
  std::optional<std::int64_t> TogetherBefore(const Contention& contention) const;

 private:
  struct Idle {
    std::size_t position = 0;
    std::int64_t start = 0;
    std::int64_t since = 0;
    std::size_t waits_over = 0;
  };
  std::optional<Idle> first_;
  std::optional<std::int64_t> last_since_;  // of the same one in the second step
  bool decides_ = false;
};

}  // namespace dcsim
