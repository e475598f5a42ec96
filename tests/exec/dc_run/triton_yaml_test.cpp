#include "tools/dc_run/triton_yaml.h"

#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "model/machine/gpu_reader.h"
#include "tests/support/source_folder.h"
#include "tools/common/file.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

CalibrationResult Result() {
  exec::LaunchFit fit;
  fit.rates = {.pointwise = 0.89,
               .tiles = 0.5,
               .reduction = 0.75,
               .outer_reduction = 0.66,
               .persistent_reduction = 0.875,
               .mixed_reduction = 0.7,
               .full_threads = 0.25,
               .trigonometric_per_second = 560e9,
               .error_functions_per_second = 12.3e9,
               .exponentials_per_second = 1850e9,
               .online_softmax_per_second = 1e13,
               .start = Duration::FromNs(1100)};
  std::apply(
      [&](const auto&... field) {
        (fit.evidence.push_back({field.key, 12, 0.345, /*shown=*/true}), ...);
      },
      TritonRates::Fields());
  fit.evidence[4] = {"persistent_reduction", 0, 0, /*shown=*/false};
  fit.evidence[10] = {"online_softmax_per_second", 1, 0.001, /*shown=*/false};
  fit.error = 0.0454;
  fit.left_out_error = 0.0766;
  CalibrationResult result;
  result.launches = fit;
  result.machine = {{"gpu", "NVIDIA H200"}};
  result.versions = {{"cuda", "13.0"}};
  result.date = "2026-11-30";
  return result;
}

TEST(TritonYamlTest, EveryRateSaysWhatItRestsOn) {
  EXPECT_EQ(PrintTritonYaml(Result(), {"gpt2", "bert-large"}, /*has_triton=*/true, "dc-run ..."),
            R"(triton:
  pointwise: 0.89                         # 12 launches, 34.5 % of the time
  tiles: 0.5                              # 12 launches, 34.5 % of the time
  reduction: 0.75                         # 12 launches, 34.5 % of the time
  outer_reduction: 0.66                   # 12 launches, 34.5 % of the time
  persistent_reduction: 0.875             # no launch: the GPU file's
  mixed_reduction: 0.7                    # 12 launches, 34.5 % of the time
  full_threads: 0.25                      # 12 launches, 34.5 % of the time
  trigonometric_per_second: 560e9         # 12 launches, 34.5 % of the time
  error_functions_per_second: 12.3e9      # 12 launches, 34.5 % of the time
  exponentials_per_second: 1850e9         # 12 launches, 34.5 % of the time
  online_softmax_per_second: 10000e9      # not shown by 1 launch, 0.1 % of the time: the GPU file's
  start: 1100 ns                          # 12 launches, 34.5 % of the time
  source: >-
    dc-run ...
    on one NVIDIA H200, {"cuda":"13.0"} 2026-11-30: Triton kernels
    of the compiled forms of gpt2, bert-large;
    mean error of a workload's Triton time 0.045, of each by the fit to the others 0.077;
    shown by no launch: persistent_reduction, online_softmax_per_second (the GPU file's)
)");
}

TEST(TritonYamlTest, WithoutTheSectionRatesCostAsWithoutAny) {
  CalibrationResult result = Result();
  result.launches->left_out_error.reset();
  const std::string text = PrintTritonYaml(result, {"gpt2"}, /*has_triton=*/false, "dc-run ...");
  EXPECT_NE(text.find("# no launch: as without rates\n"), std::string::npos);
  EXPECT_NE(text.find("Triton time 0.045;\n"), std::string::npos);
}

TEST(TritonYamlTest, AGpuFileTakesIt) {
  const YamlDocument document = YamlDocument::Parse(
      ReadFile(SourceFolder() + "/configs/gpus/h100.yaml") +
          PrintTritonYaml(Result(), {"gpt2"}, /*has_triton=*/true, "dc-run ..."),
      "new.yaml");
  Faults faults(document.locator());
  const GpuSpec gpu = ReadGpu(document.json(), Path(), faults, kKernelRatesReader);
  faults.ThrowIfAny();
  ASSERT_NE(gpu.triton, nullptr);
  const TritonRates printed = Result().launches->rates;
  const auto compare = [&](const auto& field) {
    EXPECT_EQ((*gpu.triton).*field.member, printed.*field.member) << field.key;
  };
  std::apply([&](const auto&... field) { (compare(field), ...); }, TritonRates::Fields());
}

}  // namespace
}  // namespace dcsim
