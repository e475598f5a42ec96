#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "model/base/error.h"
#include "model/base/median.h"
#include "model/base/text.h"
#include "model/ir/document.h"
#include "model/machine/cluster.h"
#include "tools/common/file.h"
#include "tools/common/libraries.h"
#include "tools/common/load.h"
#include "tools/common/program.h"

namespace dcsim {
namespace {

struct MakeOptions {
  std::string base;
  std::string curves;
  std::vector<std::string> spans;
  std::vector<int> ranks;
  std::string out = "-";
};

/// Times by payload; a later source of a size replaces an earlier one.
using Curve = std::map<Bytes, Duration>;
using Curves = std::map<std::pair<int, CollectiveKind>, Curve>;  // by ranks and kind

/// Lines of a JSON Lines file, empty ones left out, each read by `read`. Throws Error with all that
/// is wrong, by line.
void ReadJsonLines(const std::string& path, const std::function<void(ObjectReader&)>& read) {
  std::istringstream text(ReadFile(path));
  std::size_t number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string place = path + ":" + std::to_string(++number);
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    const Json json = ParseJson(line, place);
    Faults faults(PointerLocator(place));
    const Path root;
    ObjectReader object(json, root, faults);
    read(object);
    faults.ThrowIfAny();
  }
}

/// A whole number from 0 or `least` on, that 64 bits hold a million times.
std::int64_t ReadAmount(ObjectReader& object, std::string_view key, std::int64_t least) {
  constexpr std::int64_t kMost = 9'000'000'000'000;
  std::int64_t amount = least;
  if (object.Required(key, ReadInteger, amount) && (amount < least || amount > kMost)) {
    object.faults().Add(object.At(key), "expected a whole number from " + std::to_string(least) +
                                            " to " + std::to_string(kMost));
    return least;
  }
  return amount;
}

/// Small calls from Python measure the host's time per call, not the device's: drop all sizes up to
/// the last that takes less than 1.5 times the median of the five smallest.
void DropHostBound(Curve& curve) {
  constexpr std::size_t kSmallest = 5;
  std::vector<Duration> smallest;
  for (const auto& [bytes, time] : curve) {
    if (smallest.size() < kSmallest) {
      smallest.push_back(time);
    }
  }
  const Duration floor = Median(smallest);
  Bytes last;
  for (const auto& [bytes, time] : curve) {
    last = time * 2 < floor * 3 ? bytes : last;
  }
  std::erase_if(curve, [last](const auto& point) { return point.first <= last; });
}

/// Microseconds, as a Duration.
Duration ReadMicroseconds(ObjectReader& object, const std::string& key) {
  constexpr double kMost = 1e9;
  double us = 1;
  if (object.Required(key, ReadNumber, us) && !(us > 0 && us <= kMost)) {
    object.faults().Add(object.At(key), "expected microseconds above 0, up to 1e9");
    us = 1;
  }
  return Duration::FromNs(std::max<std::int64_t>(1, std::llround(us * 1000)));
}

/// Lines {"world", "bytes", "all_gather_us", "reduce_scatter_us", "all_reduce_us"}; those with a
/// "kind" are other measurements.
Curves ReadCurves(const std::string& path, const std::vector<int>& ranks) {
  Curves curves;
  ReadJsonLines(path, [&](ObjectReader& line) {
    if (line.Find("kind") != nullptr) {
      return;
    }
    const std::int64_t world = ReadAmount(line, "world", 1);
    if (std::find(ranks.begin(), ranks.end(), world) == ranks.end()) {
      return;
    }
    const Bytes bytes(ReadAmount(line, "bytes", 1));
    for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
      const std::string key = std::string(CollectiveKindNames()[kind]) + "_us";
      curves[{static_cast<int>(world), static_cast<CollectiveKind>(kind)}][bytes] =
          ReadMicroseconds(line, key);
    }
  });
  for (auto& [key, curve] : curves) {
    DropHostBound(curve);
  }
  return curves;
}

struct RankSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// By kind of collective and MiB, in order.
using Spans = std::map<std::pair<CollectiveKind, std::int64_t>, std::vector<RankSpan>>;

/// NCCL kernels that run alone (case "none").
Spans ReadSpans(const std::string& path) {
  constexpr std::array<std::string_view, 2> kKinds = {"ag", "rs"};
  Spans spans;
  ReadJsonLines(path, [&](ObjectReader& line) {
    std::string name;
    std::string beside;
    line.Required("name", ReadString, name);
    line.Required("case", ReadString, beside);
    if (beside != "none" || name.find("nccl") == std::string::npos) {
      return;
    }
    std::size_t kind = 0;
    line.Require("kind");
    line.OptionalChoice("kind", kKinds, kind);
    const std::int64_t mib = ReadAmount(line, "mib", 1);
    const RankSpan span{ReadAmount(line, "s", 0), ReadAmount(line, "e", 0)};
    if (span.end <= span.start) {
      line.faults().Add(line.At("e"), "expected an end behind the start 's'");
    }
    spans[{kind == 0 ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter, mib}].push_back(
        span);
  });
  return spans;
}

/// The same collective of all ranks: from the last start to the last end.
Duration TimeTogether(const std::vector<Spans>& ranks, const Spans::key_type& key, std::size_t i) {
  RankSpan last = ranks.front().at(key)[i];
  for (const Spans& rank : ranks) {
    last.start = std::max(last.start, rank.at(key)[i].start);
    last.end = std::max(last.end, rank.at(key)[i].end);
  }
  return Duration::FromNs(last.end - last.start);
}

/// The n-th collectives of each rank are one. Throws Error unless all ranks have as many.
void AddSpans(const std::vector<std::string>& paths, Curves& curves) {
  std::vector<Spans> ranks;
  ranks.reserve(paths.size());
  for (const std::string& path : paths) {
    ranks.push_back(ReadSpans(path));
    const auto same = [](const auto& one, const auto& other) {
      return one.first == other.first && one.second.size() == other.second.size();
    };
    if (!std::equal(ranks.front().begin(), ranks.front().end(), ranks.back().begin(),
                    ranks.back().end(), same)) {
      throw Error(path + ": expected the same collectives as in " + paths.front());
    }
  }
  for (const auto& [key, first] : ranks.empty() ? Spans() : ranks.front()) {
    std::vector<Duration> times;
    for (std::size_t i = 0; i < first.size(); ++i) {
      times.push_back(TimeTogether(ranks, key, i));
    }
    curves[{static_cast<int>(paths.size()), key.first}][Bytes::MiB(key.second)] = Median(times);
  }
}

std::string PrintCurves(const Curves& curves) {
  std::string text = "collectives:            # [full tensor, time from the last rank's start]\n";
  for (const auto& [key, curve] : curves) {
    text += "  - kind: " + std::string(CollectiveKindName(key.second)) + "\n" +
            "    ranks: " + std::to_string(key.first) + "\n    points:\n";
    for (const auto& [bytes, time] : curve) {
      text += "      - [" + PrintBytes(bytes) + ", " + std::to_string(time.ns()) + " ns]\n";
    }
  }
  return text;
}

std::string CommandOf(const MakeOptions& options) {
  std::string command = "make-cluster make --base " + options.base + " --curves " + options.curves;
  for (const int ranks : options.ranks) {
    command += " --ranks " + std::to_string(ranks);
  }
  for (const std::string& path : options.spans) {
    command += " --spans " + path;
  }
  return command + " --out " + options.out;
}

/// Throws Error unless the text, where it is going to lie, is a cluster file.
void RequireCluster(const std::string& text, const MakeOptions& options) {
  const std::string& beside = options.out == "-" ? options.base : options.out;
  const std::string what = options.base + " with the tables";
  ReadClusterDocument(YamlDocument::Parse(text, what), std::filesystem::path(beside).parent_path());
}

ExitCode RunMake(const MakeOptions& options) {
  Curves curves = ReadCurves(options.curves, options.ranks);
  for (const int ranks : options.ranks) {
    if (!curves.contains({ranks, CollectiveKind::kAllGather})) {
      throw Error(options.curves + ": holds no curve for " + std::to_string(ranks) + " ranks");
    }
  }
  AddSpans(options.spans, curves);
  const std::string text = ReadFile(options.base) + PrintCurves(curves);
  CheckOutputs({{"--out", options.out}});
  RequireCluster(text, options);
  WriteFile(options.out, "# Made by: " + CommandOf(options) + "\n" + text);
  return ExitCode::kDone;
}

Subcommand MakeCommand() {
  return {
      "make", "Turns raw collective curves into a cluster file",
      "  make-cluster make --base configs/measured/h200-8.base.yaml --curves "
      "configs/measured/h200x8-nccl.jsonl --ranks 2 --ranks 4 --ranks 8 --out "
      "configs/clusters/h200-8.yaml",
      [](CLI::App& app) -> std::function<ExitCode()> {
        const auto options = std::make_shared<MakeOptions>();
        app.add_option("--base", options->base, "the cluster file without its tables")->required();
        app.add_option("--curves", options->curves, "curves measured from Python, JSON lines")
            ->required();
        app.add_option("--spans", options->spans, "kernel spans of each rank, JSON lines");
        app.add_option("--ranks", options->ranks, "numbers of ranks to take")
            ->required()
            ->check(CLI::Range(1, 1'000'000));
        app.add_option("--out", options->out, "cluster file to write; stdout if left out or -");
        return [options] { return RunMake(*options); };
      }};
}

}  // namespace
}  // namespace dcsim

int main(int argc, char** argv) {
  const dcsim::Program program = {"make-cluster",
                                  "Turns raw measurements into cluster files.",
                                  dcsim::ToolLibraries(),
                                  {dcsim::MakeCommand()}};
  return dcsim::RunProgram(program, argc, argv);
}
