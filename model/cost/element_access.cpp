#include "model/cost/element_access.h"

#include <algorithm>
#include <vector>

namespace dcsim {
namespace {

/// Dense in some order of its dimensions.
bool IsDense(const Value& value) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, length
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    if (value.shape[i] > 1) {
      dimensions.emplace_back(value.strides[i], value.shape[i]);
    }
  }
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t elements = 1;
  for (const auto& [stride, length] : dimensions) {
    if (stride != elements) {
      return false;
    }
    elements *= length;
  }
  return true;
}

bool HasLayoutOf(const Value& value, const Value& other) {
  for (std::size_t i = 0; i < value.shape.size() && i < other.shape.size(); ++i) {
    if (value.shape[i] > 1 && value.strides[i] != other.strides[i]) {
      return false;
    }
  }
  return value.shape.size() == other.shape.size();
}

/// Whether dimensions follow each other in memory as in another value; expanded ones lie anywhere.
bool HasOrderOf(const Value& value, const Value& other) {
  std::vector<std::pair<std::int64_t, std::int64_t>> strides;  // of the other, of the value
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    if (value.shape[i] > 1 && value.strides[i] > 0) {
      strides.emplace_back(other.strides[i], value.strides[i]);
    }
  }
  std::sort(strides.begin(), strides.end());
  return std::is_sorted(strides.begin(), strides.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// The dimension along which neighbours in memory lie.
std::size_t NearestDimension(const Value& value) {
  std::size_t nearest = 0;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    const bool shorter = value.strides[i] < value.strides[nearest] || value.shape[nearest] == 1;
    nearest = value.shape[i] > 1 && shorter ? i : nearest;
  }
  return nearest;
}

/// Whether neighbours in the result lie in other sectors of memory in an operand as large.
bool IsTransposed(const Value& operand, const Value& result) {
  if (operand.shape.size() != result.shape.size() || result.shape.empty()) {
    return false;
  }
  const std::size_t nearest = NearestDimension(result);
  constexpr std::int64_t kSector = 32;  // bytes
  return result.shape[nearest] > 1 &&
         operand.strides[nearest] * ElementBytes(operand.dtype) >= kSector;
}

bool IsIndex(const Value& value, const Value& result) {
  const auto is_integer = [](DType dtype) {
    return dtype == DType::kInt64 || dtype == DType::kInt32;
  };
  return is_integer(value.dtype) && !is_integer(result.dtype);
}

}  // namespace

ElementAccess CopyAccess(const Value& value) {
  if (value.is_contiguous()) {
    return ElementAccess::kPlain;
  }
  Value result = value;
  std::int64_t stride = 1;
  for (std::size_t i = value.shape.size(); i > 0; --i) {
    result.strides[i - 1] = stride;
    stride *= value.shape[i - 1];
  }
  return IsTransposed(value, result) ? ElementAccess::kTransposed : ElementAccess::kAlike;
}

ElementAccess AccessOf(const std::vector<const Value*>& inputs, const Value& result) {
  std::vector<const Value*> operands;
  for (const Value* value : inputs) {
    // Kernels take a number of the host, which comes in a dtype of its own, as an argument.
    const bool is_number = value->numel() == 1 && value->dtype != result.dtype;
    if (!is_number && !IsIndex(*value, result)) {
      operands.push_back(value);
    }
  }
  const auto any = [&](const auto& holds) {
    return std::any_of(operands.begin(), operands.end(), holds);
  };
  const auto is_whole = [&](const Value* value) { return value->numel() == result.numel(); };
  if (any([&](const Value* value) { return is_whole(value) && IsTransposed(*value, result); })) {
    return ElementAccess::kTransposed;
  }
  const bool converts = any([&](const Value* value) {
    return value->dtype != result.dtype && value->dtype != DType::kBool;
  });
  if (converts && operands.size() > 1) {
    return ElementAccess::kConverted;
  }
  const bool strays = any([&](const Value* value) {
    return is_whole(value) && value->shape.size() == result.shape.size() &&
           !HasOrderOf(*value, result);
  });
  const auto whole = std::count_if(operands.begin(), operands.end(), is_whole);
  if (strays && whole > 1) {
    return ElementAccess::kPermuted;
  }
  const bool lengthens = any(
      [&](const Value* value) { return ElementBytes(value->dtype) < ElementBytes(result.dtype); });
  if (strays || lengthens) {
    return ElementAccess::kAlike;
  }
  const bool dense = IsDense(result) && !any([&](const Value* value) {
                       return !is_whole(value) || !IsDense(*value) || !HasLayoutOf(*value, result);
                     });
  return dense ? ElementAccess::kPlain : ElementAccess::kBroadcast;
}

bool IsDenseChannelsLast(const Value& value) {
  std::int64_t expected = value.shape[1];
  for (std::size_t i = value.shape.size() - 1; i > 1; --i) {
    if (value.shape[i] > 1 && value.strides[i] != expected) {
      return false;
    }
    expected *= value.shape[i];
  }
  return (value.shape[1] == 1 || value.strides[1] == 1) &&
         (value.shape[0] == 1 || value.strides[0] == expected);
}

}  // namespace dcsim
