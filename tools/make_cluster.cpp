#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "model/base/error.h"
#include "model/base/median.h"
#include "model/base/text.h"
#include "model/cost/cluster.h"
#include "model/ir/document.h"
#include "tools/common/file.h"
#include "tools/common/libraries.h"
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

std::vector<Json> ReadJsonLines(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text(ReadFile(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(ParseJson(line, path + ":" + std::to_string(lines.size() + 1)));
  }
  return lines;
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

/// Lines {"world", "bytes", "all_gather_us", "reduce_scatter_us", "all_reduce_us"}.
Curves ReadCurves(const std::string& path, const std::vector<int>& ranks) {
  Curves curves;
  for (const Json& line : ReadJsonLines(path)) {
    if (line.contains("kind") ||
        std::find(ranks.begin(), ranks.end(), line.value("world", 0)) == ranks.end()) {
      continue;
    }
    for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
      const double us = line.at(std::string(CollectiveKindNames()[kind]) + "_us").get<double>();
      curves[{line["world"].get<int>(), static_cast<CollectiveKind>(kind)}]
            [Bytes(line["bytes"].get<std::int64_t>())] = Duration::FromNs(std::llround(us * 1000));
    }
  }
  for (auto& [key, curve] : curves) {
    DropHostBound(curve);
  }
  return curves;
}

struct RankSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// NCCL kernels that run alone (case "none"), by kind and MiB, in order.
std::map<std::pair<std::string, std::int64_t>, std::vector<RankSpan>> ReadSpans(
    const std::string& path) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<RankSpan>> spans;
  for (const Json& line : ReadJsonLines(path)) {
    const bool collective = line.at("name").get<std::string>().find("nccl") != std::string::npos;
    if (line.at("case") == "none" && collective) {
      spans[{line.at("kind").get<std::string>(), line.at("mib").get<std::int64_t>()}].push_back(
          {line.at("s").get<std::int64_t>(), line.at("e").get<std::int64_t>()});
    }
  }
  return spans;
}

/// The n-th collective of each rank together: from the last start to the last end.
void AddSpans(const std::vector<std::string>& paths, Curves& curves) {
  std::vector<std::map<std::pair<std::string, std::int64_t>, std::vector<RankSpan>>> ranks;
  ranks.reserve(paths.size());
  for (const std::string& path : paths) {
    ranks.push_back(ReadSpans(path));
  }
  for (const auto& [key, first] : ranks.empty() ? decltype(ReadSpans("")){} : ranks.front()) {
    std::vector<Duration> times;
    for (std::size_t i = 0; i < first.size(); ++i) {
      RankSpan last = first[i];
      for (const auto& rank : ranks) {
        last.start = std::max(last.start, rank.at(key).at(i).start);
        last.end = std::max(last.end, rank.at(key).at(i).end);
      }
      times.push_back(Duration::FromNs(last.end - last.start));
    }
    const auto kind =
        key.first == "ag" ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
    curves[{static_cast<int>(paths.size()), kind}][Bytes::MiB(key.second)] = Median(times);
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

ExitCode RunMake(const MakeOptions& options) {
  Curves curves = ReadCurves(options.curves, options.ranks);
  AddSpans(options.spans, curves);
  if (curves.empty()) {
    throw Error(options.curves + ": holds no curve for these ranks");
  }
  WriteFile(options.out, "# Made by: " + CommandOf(options) + "\n" + ReadFile(options.base) +
                             PrintCurves(curves));
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
        app.add_option("--ranks", options->ranks, "numbers of ranks to take")->required();
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
