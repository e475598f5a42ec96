#include "tools/dc_run/triton_yaml.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "model/base/text.h"

namespace dcsim {
namespace {

constexpr std::size_t kCommentColumn = 42;

/// All digits that a number has: "0.89", "560e9" of one a second.
std::string NumberText(double number) {
  constexpr double kBillion = 1e9;
  const bool large = number >= kBillion;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", large ? number / kBillion : number);
  return std::string(text.data()) + (large ? "e9" : "");
}

std::string ValueText(double number) {
  return NumberText(number);
}

std::string ValueText(Duration time) {
  return PrintNs(time);
}

const char* KeptText(bool has_triton) {
  return has_triton ? "the GPU file's" : "as without rates";
}

std::string EvidenceText(const exec::RateEvidence& evidence, bool has_triton) {
  const std::string kept = std::string(": ") + KeptText(has_triton);
  if (evidence.launches == 0) {
    return "no launch" + kept;
  }
  constexpr double kPercent = 100;
  const std::string launches = std::to_string(evidence.launches) +
                               (evidence.launches == 1 ? " launch, " : " launches, ") +
                               PrintShare(evidence.share * kPercent, 1) + " % of the time";
  return evidence.shown ? launches : "not shown by " + launches + kept;
}

std::string RatesText(const exec::LaunchFit& fit, bool has_triton) {
  std::string text;
  std::size_t place = 0;
  const auto add = [&](const auto& field) {
    std::string line =
        "  " + std::string(field.key) + ": " + ValueText(fit.rates.*field.member) + "  ";
    line.resize(std::max(line.size(), kCommentColumn), ' ');
    text += line + "# " + EvidenceText(fit.evidence[place++], has_triton) + "\n";
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, TritonRates::Fields());
  return text;
}

std::string NotShownText(const exec::LaunchFit& fit, bool has_triton) {
  std::string names;
  for (const exec::RateEvidence& each : fit.evidence) {
    if (!each.shown) {
      names += (names.empty() ? "" : ", ") + std::string(each.rate);
    }
  }
  return names.empty() ? ""
                       : ";\n    shown by no launch: " + names + " (" + KeptText(has_triton) + ")";
}

}  // namespace

std::string PrintTritonYaml(const CalibrationResult& result,
                            const std::vector<std::string>& workloads,
                            bool has_triton,
                            const std::string& command) {
  constexpr int kDecimals = 3;
  const exec::LaunchFit& fit = *result.launches;
  return "triton:\n" + RatesText(fit, has_triton) + "  source: >-\n    " + command +
         "\n    on one " + result.machine.value("gpu", "") + ", " + result.versions.dump() + " " +
         result.date + ": Triton kernels\n    of the compiled forms of " + Join(workloads, ", ") +
         ";\n    mean error of a workload's Triton time " + PrintShare(fit.error, kDecimals) +
         (fit.left_out_error
              ? ", of each by the fit to the others " + PrintShare(*fit.left_out_error, kDecimals)
              : "") +
         NotShownText(fit, has_triton) + "\n";
}

}  // namespace dcsim
