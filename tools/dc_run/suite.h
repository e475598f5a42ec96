#pragma once

#include <string>
#include <vector>

namespace dcsim {

/// Plans of one workload that are executed together with the same changes.
struct SuiteCase {
  std::string workload;              // folder
  std::vector<std::string> plans;    // files
  std::vector<std::string> changes;  // "key=value", of every plan
  std::string name;                  // put behind the plans' names; empty without changes
  bool timelines = false;            // whether measured timelines are kept
};

/// Cases to measure on one machine, one suite of a file of dc-suites/1, YAML
/// (docs/reference/formats.md).
struct Suite {
  std::string cluster;  // file
  int gpus = 1;
  int warmup = 5;
  int steps = 20;
  std::vector<SuiteCase> cases;
};

/// Reads the suite that `FILE:NAME` names; paths in it count from the file's folder, and names
/// without a slash stand for workloads and plans where this repository has them. Throws Error with
/// every fault of the file.
Suite LoadSuite(const std::string& file_and_name);

}  // namespace dcsim
