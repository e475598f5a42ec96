#include "tools/dc_run/versions.h"

#include <string>

#include "dcsim_version.h"
#include "exec/device/machine.h"

namespace dcsim {

Json Versions() {
  Json versions = exec::VersionReport();
  versions["dc-run"] = std::string(kVersion) + " " + kCommit;
  return versions;
}

}  // namespace dcsim
