#include "model/ir/graph.h"

#include <algorithm>

namespace dcsim {

std::int64_t Value::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

bool Value::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) {
      return true;
    }
    if (shape[i] != 1 && strides[i] != expected) {
      return false;
    }
    expected *= shape[i];
  }
  return true;
}

ValueId Op::first_output() const {
  const auto first = std::find_if(outputs.begin(), outputs.end(),
                                  [](ValueId output) { return !output.is_none(); });
  return first == outputs.end() ? ValueId::None() : *first;
}

std::string_view Graph::target(OpId id) const {
  if (op(id).launch) {
    return kernel(*op(id).launch).name;
  }
  const std::string_view schema = schemas[op(id).schema];
  return schema.substr(0, schema.find('('));
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const Param& param : params) {
    count += value(param.value).numel();
  }
  return count;
}

}  // namespace dcsim
