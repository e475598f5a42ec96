#include "tools/common/answer_json.h"

#include <utility>

#include "dcsim_version.h"
#include "tools/common/json_text.h"

namespace dcsim {

Json AnsweringVersion() {
  return {{"dc-sim", std::string(kVersion) + " " + kCommit}};
}

std::string PrintAnswer(Json document) {
  document["versions"] = AnsweringVersion();
  return PrintJson(document);
}

}  // namespace dcsim
