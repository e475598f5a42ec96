#pragma once

#include <string>

#include <gtest/gtest.h>

namespace dcsim {

/// Names the tests of a table after their rows' `name` field (letters and digits only).
struct RowName {
  template <typename Row>
  std::string operator()(const testing::TestParamInfo<Row>& row) const {
    return row.param.name;
  }
};

}  // namespace dcsim
