#include "sim/analysis/exposure.h"

#include <algorithm>
#include <tuple>

namespace dcsim {
namespace {

/// A piece of time in which a task ran.
struct Piece {
  TaskId task;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct Pieces {
  std::vector<Piece> compute;      // by start; one stream, so they do not overlap
  std::vector<Piece> collectives;  // by start
};

Pieces Sort(const Timeline& timeline, const Schedule& schedule) {
  Pieces pieces;
  for (const Span& span : timeline.spans) {
    const Piece piece{span.task, std::max<std::int64_t>(0, span.start.ns()), span.end.ns()};
    const bool collective = schedule.FindCollective(span.task) != nullptr;
    const bool compute = span.stream == static_cast<std::uint8_t>(StreamRole::kCompute);
    if (piece.end > piece.start && (collective || compute)) {
      (collective ? pieces.collectives : pieces.compute).push_back(piece);
    }
  }
  const auto earlier = [](const Piece& a, const Piece& b) {
    return std::tuple(a.start, a.task) < std::tuple(b.start, b.task);
  };
  std::sort(pieces.compute.begin(), pieces.compute.end(), earlier);
  std::sort(pieces.collectives.begin(), pieces.collectives.end(), earlier);
  return pieces;
}

/// The stretches of [start, end) that lie in no compute, in order.
std::vector<Piece> Uncovered(const Piece& piece, const std::vector<Piece>& compute) {
  std::vector<Piece> left;
  std::int64_t at = piece.start;
  auto next = std::partition_point(compute.begin(), compute.end(),
                                   [&piece](const Piece& p) { return p.end <= piece.start; });
  for (; next != compute.end() && next->start < piece.end; ++next) {
    if (next->start > at) {
      left.push_back({piece.task, at, next->start});
    }
    at = std::max(at, next->end);
  }
  if (at < piece.end) {
    left.push_back({piece.task, at, piece.end});
  }
  return left;
}

TaskId LongestBeside(const Piece& piece, const std::vector<Piece>& compute) {
  TaskId longest;
  std::int64_t most = 0;
  auto next = std::partition_point(compute.begin(), compute.end(),
                                   [&piece](const Piece& p) { return p.end <= piece.start; });
  for (; next != compute.end() && next->start < piece.end; ++next) {
    const std::int64_t beside = std::min(next->end, piece.end) - std::max(next->start, piece.start);
    if (beside > most) {
      most = beside;
      longest = next->task;
    }
  }
  return longest;
}

}  // namespace

std::vector<CollectiveExposure> FindExposure(const Timeline& timeline, const Schedule& schedule) {
  const Pieces pieces = Sort(timeline, schedule);
  std::vector<CollectiveExposure> exposures;
  std::int64_t booked = 0;  // everything before it is some earlier collective's
  for (const Piece& piece : pieces.collectives) {
    CollectiveExposure exposure;
    exposure.task = piece.task;
    exposure.start = SimTime::FromNs(piece.start);
    exposure.busy = Duration::FromNs(piece.end - piece.start);
    exposure.hidden_by = LongestBeside(piece, pieces.compute);
    for (const Piece& bare : Uncovered(piece, pieces.compute)) {
      const std::int64_t start = std::max(bare.start, booked);
      exposure.exposed += Duration::FromNs(std::max<std::int64_t>(0, bare.end - start));
    }
    booked = std::max(booked, piece.end);
    exposures.push_back(exposure);
  }
  return exposures;
}

std::vector<Duration> ExposedByKind(const std::vector<CollectiveExposure>& exposures,
                                    const Schedule& schedule) {
  std::vector<Duration> by_kind(CollectiveKindNames().size());
  for (const CollectiveExposure& exposure : exposures) {
    const Collective* collective = schedule.FindCollective(exposure.task);
    by_kind[static_cast<std::size_t>(collective->kind)] += exposure.exposed;
  }
  return by_kind;
}

}  // namespace dcsim
