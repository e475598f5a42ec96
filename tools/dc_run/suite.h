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

/// Cases to measure on one machine. File form: dc-suite/1, YAML (docs/lab/accuracy.md).
struct Suite {
  std::string cluster;  // file
  int gpus = 1;
  int warmup = 5;
  int steps = 20;
  std::vector<SuiteCase> cases;
};

/// Reads a suite; paths in it count from its folder. Throws Error with every fault of the file.
Suite LoadSuite(const std::string& path);

}  // namespace dcsim
