#include "model/cost/operators.h"

#include <algorithm>

namespace dcsim {
namespace {

static_assert(std::is_sorted(kOperators.begin(),
                             kOperators.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));

/// The name without namespace and overload.
std::string_view BaseOf(std::string_view name) {
  const std::size_t space = name.find("::");
  name.remove_prefix(space == std::string_view::npos ? 0 : space + 2);
  return name.substr(0, name.find('.'));
}

/// Names of operators are words between underscores; these are of products, whatever is added to
/// them, and of networks that consist of products.
bool IsProduct(std::string_view name) {
  constexpr std::array<std::string_view, 26> kWords = {
      "mm",        "addmm", "bmm",    "baddbmm", "addbmm",     "mv",       "addmv",
      "dot",       "vdot",  "inner",  "matmul",  "linear",     "bilinear", "trilinear",
      "attention", "attn",  "gemm",   "einsum",  "tensordot",  "cdist",    "rnn",
      "lstm",      "gru",   "linalg", "matrix",  "transformer"};
  constexpr std::array<std::string_view, 3> kNone = {
      // norms, and the gates of a recurrent cell
      "aten::linalg_vector_norm", "aten::_thnn_fused_lstm_cell", "aten::_thnn_fused_gru_cell"};
  const auto named = [name](std::string_view op) { return name.starts_with(op); };
  if (std::any_of(kNone.begin(), kNone.end(), named)) {
    return false;
  }
  std::string_view rest = BaseOf(name);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    const std::string_view word = rest.substr(0, end);
    // conv2d, conv_transpose3d, convolution
    if ((word.starts_with("conv") && !word.starts_with("conver")) ||
        std::find(kWords.begin(), kWords.end(), word) != kWords.end()) {
      return true;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

enum class Part : std::uint8_t { kBegin, kAnywhere, kAllButOverload };

/// Names of a family.
struct NameRule {
  std::string_view text;
  Part part;
  KernelFamily family;

  bool Takes(std::string_view name) const {
    switch (part) {
      case Part::kBegin:
        return name.starts_with(text);
      case Part::kAnywhere:
        return name.find(text) != std::string_view::npos;
      case Part::kAllButOverload:
        break;
    }
    return name.substr(0, name.find('.')) == text;
  }
};

/// The first that takes a name counts, of attention before names of products.
constexpr auto kAttention = std::to_array<NameRule>({
    {"aten::_scaled_dot_product_cudnn_", Part::kBegin, KernelFamily::kCudnnAttention},
    {"aten::_scaled_dot_product_efficient_", Part::kBegin, KernelFamily::kEfficientAttention},
    {"aten::_efficient_attention_", Part::kBegin, KernelFamily::kEfficientAttention},
    {"aten::_scaled_dot_product_", Part::kBegin, KernelFamily::kFlashAttention},
    {"aten::_flash_attention_", Part::kBegin, KernelFamily::kFlashAttention},
});
constexpr auto kOthers = std::to_array<NameRule>({
    {"safe_softmax", Part::kAnywhere, KernelFamily::kSafeSoftmax},
    {"log_softmax", Part::kAnywhere, KernelFamily::kLogSoftmax},
    {"softmax", Part::kAnywhere, KernelFamily::kSoftmax},
    {"group_norm", Part::kAnywhere, KernelFamily::kGroupNorm},
    {"batch_norm_legit_no_training", Part::kAnywhere, KernelFamily::kBatchNormInference},
    {"batch_norm", Part::kAnywhere, KernelFamily::kBatchNorm},
    {"layer_norm", Part::kAnywhere, KernelFamily::kLayerNorm},
    {"rms_norm", Part::kAnywhere, KernelFamily::kLayerNorm},
    {"aten::argsort", Part::kAllButOverload, KernelFamily::kSort},
    {"aten::new_", Part::kBegin, KernelFamily::kFill},
    {"aten::sum", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::mean", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::amax", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::amin", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::max", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::min", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::any", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::all", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::prod", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::var", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::std", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::linalg_vector_norm", Part::kAllButOverload, KernelFamily::kReduction},
    {"aten::gelu", Part::kBegin, KernelFamily::kGelu},
    {"aten::masked_fill", Part::kBegin, KernelFamily::kMaskedFill},
});

template <typename Rules>
std::optional<KernelFamily> FindFamily(const Rules& rules, std::string_view name) {
  const auto* found = std::find_if(rules.begin(), rules.end(),
                                   [name](const NameRule& rule) { return rule.Takes(name); });
  return found == rules.end() ? std::nullopt : std::optional(found->family);
}

}  // namespace

const Operator* FindOperator(std::string_view name) {
  const auto* found =
      std::lower_bound(kOperators.begin(), kOperators.end(), name,
                       [](const Operator& row, std::string_view text) { return row.name < text; });
  return found != kOperators.end() && found->name == name ? found : nullptr;
}

std::optional<KernelFamily> FamilyByName(std::string_view name) {
  if (const auto attention = FindFamily(kAttention, name)) {
    return attention;
  }
  return IsProduct(name)
             ? std::nullopt
             : std::optional(FindFamily(kOthers, name).value_or(KernelFamily::kElementwise));
}

}  // namespace dcsim
