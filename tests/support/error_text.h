#pragma once

#include <string>

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace dcsim {

/// The message of the Error that a call throws. A call that throws none fails the test.
template <typename Call>
std::string ErrorText(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return "";
}

}  // namespace dcsim
