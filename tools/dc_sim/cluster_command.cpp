#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <unistd.h>

#include "model/base/error.h"
#include "model/base/text.h"
#include "tools/common/config_path.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/dc_sim/commands.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// Something that a cluster file needs.
struct Question {
  std::string option;
  std::string key;   // JSON pointer in the file
  std::string help;  // and what a terminal is asked
};

const std::vector<Question>& OfMachines() {
  static const std::vector<Question> questions = {
      {"--gpu", "/gpu", "GPU: a name of configs/gpus (h200, h100, a100, b200) or a file"},
      {"--gpus-per-node", "/gpus_per_node", "GPUs of a machine"},
      {"--nodes", "/nodes", "machines"},
      {"--bandwidth", "/intra_node/bus_bandwidth",
       "busbw of nccl-tests for large messages within a machine, such as '345 GB/s'"},
      {"--latency", "/intra_node/latency", "time of one launch within a machine, such as '7 us'"},
      {"--hop-latency", "/intra_node/hop_latency",
       "time of each step of a ring within a machine, such as '1 us'"}};
  return questions;
}

/// What several machines need besides.
const std::vector<Question>& OfNetwork() {
  static const std::vector<Question> questions = {
      {"--inter-bandwidth", "/inter_node/bus_bandwidth",
       "busbw of nccl-tests over all GPUs of the job, such as '370 GB/s'"},
      {"--inter-latency", "/inter_node/latency",
       "time of one launch over machines, such as '20 us'"},
      {"--inter-hop-latency", "/inter_node/hop_latency",
       "time of each step of a ring over machines, such as '5 us'"}};
  return questions;
}

struct ClusterOptions {
  std::string action;
  std::string out;
  std::map<std::string, std::string> answers;  // by option
};

/// The answers to these questions; a terminal is asked for what is missing, elsewhere it is an
/// error.
void Complete(const std::vector<Question>& questions, ClusterOptions& options) {
  const bool asks = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  std::string missing;
  for (const Question& question : questions) {
    std::string& answer = options.answers[question.option];
    if (answer.empty() && asks) {
      std::cerr << question.help << ": ";
      std::getline(std::cin, answer);
    }
    missing += answer.empty() ? "\n  " + question.option + ": " + question.help : "";
  }
  if (!missing.empty()) {
    throw Error("cluster new: these are missing:" + missing);
  }
}

/// One machine has no network: what is said of it would not be used.
void RejectNetwork(const ClusterOptions& options) {
  for (const Question& question : OfNetwork()) {
    if (!options.answers.at(question.option).empty()) {
      throw Error(question.option + ": --nodes 1 has no network between machines; leave it out");
    }
  }
}

/// The GPU's file as the cluster file names it: from its own folder.
std::string GpuPath(const std::string& gpu, const fs::path& folder) {
  const std::string file = FindConfig(gpu, "gpus", "GPU file");
  if (!FileExists(file)) {
    throw Error("--gpu " + gpu + ": no such GPU file" + DidYouMeanFile(file));
  }
  return fs::relative(file, folder).string();
}

std::string LinkLine(const std::string& name, const Json& link) {
  return name + ": {bus_bandwidth: " + link["bus_bandwidth"].get<std::string>() +
         ", latency: " + link["latency"].get<std::string>() +
         ", hop_latency: " + link["hop_latency"].get<std::string>() + "}\n";
}

std::string YamlText(const Json& cluster) {
  std::string text = "format: dc-cluster/1\nname: " + cluster["name"].dump() +
                     "\nnodes: " + cluster["nodes"].dump() +
                     "\ngpus_per_node: " + cluster["gpus_per_node"].dump() +
                     "\ngpu: " + cluster["gpu"].dump() + "   # path from this file\n" +
                     LinkLine("intra_node", cluster["intra_node"]);
  return cluster.contains("inter_node") ? text + LinkLine("inter_node", cluster["inter_node"])
                                        : text;
}

ExitCode RunCluster(ClusterOptions options) {
  if (options.action != "new") {
    throw Error("cluster " + options.action + ": expected new");
  }
  CheckOutputs({{"--out", options.out}});
  std::vector<Question> questions = OfMachines();
  Complete(questions, options);
  if (options.answers["--nodes"] != "1") {
    Complete(OfNetwork(), options);
    questions.insert(questions.end(), OfNetwork().begin(), OfNetwork().end());
  } else {
    RejectNetwork(options);
  }
  const fs::path out = options.out == "-" ? fs::path("cluster.yaml") : fs::path(options.out);
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  Json cluster = {{"format", "dc-cluster/1"}, {"name", out.stem().string()}};
  std::map<std::string, std::string> places = {{"", options.out}};
  for (const Question& question : questions) {
    const std::string& answer = options.answers[question.option];
    cluster[Json::json_pointer(question.key)] =
        question.key == "/gpu"                                       ? Json(GpuPath(answer, folder))
        : question.key.ends_with("node") || question.key == "/nodes" ? ParseYamlScalar(answer)
                                                                     : Json(answer);
    places[question.key] = question.option + " " + answer;
  }
  ReadClusterDocument({cluster, places}, folder);
  WriteFile(options.out, YamlText(cluster));
  if (options.out != "-") {
    std::cerr << options.out
              << ": times of the host are those of an H200's; dc-run calibrate "
                 "measures all of it on the machine\n";
  }
  return ExitCode::kDone;
}

void Declare(CLI::App& app, const std::vector<Question>& questions, ClusterOptions& options) {
  for (const Question& question : questions) {
    app.add_option(question.option, options.answers[question.option], question.help);
  }
}

}  // namespace

Subcommand ClusterCommand() {
  return {"cluster", "Write a cluster file: new asks for what one needs",
          "  dc-sim cluster new --out my-cluster.yaml\n"
          "  dc-sim cluster new --gpu h100 --nodes 1 --gpus-per-node 8 --bandwidth '345 GB/s' \\\n"
          "    --latency '7 us' --hop-latency '1 us' --out my-cluster.yaml",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<ClusterOptions>();
            app.add_option("ACTION", options->action, "new")->required();
            app.add_option("--out", options->out, "the file to write; - is stdout")->required();
            Declare(app, OfMachines(), *options);
            Declare(app, OfNetwork(), *options);
            return [options] { return RunCluster(*options); };
          }};
}

}  // namespace dcsim
