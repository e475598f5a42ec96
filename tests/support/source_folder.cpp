#include "tests/support/source_folder.h"

namespace dcsim {

std::string SourceFolder() {
  return DCSIM_SOURCE_DIR;
}

}  // namespace dcsim
