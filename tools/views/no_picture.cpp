// Stands for the picture where a build has no Graphviz: in the Python module.

#include "model/base/error.h"
#include "tools/views/schedule_dag.h"

namespace dcsim {

void CheckDagPath(const std::string& path) {
  throw Error(path + ": this dc-sim is built without Graphviz and draws no graphs");
}

void WriteScheduleDag(const std::string& path,
                      DagForm /*form*/,
                      const Schedule& /*schedule*/,
                      const Graph& /*graph*/,
                      const Timeline& /*timeline*/) {
  CheckDagPath(path);
}

}  // namespace dcsim
