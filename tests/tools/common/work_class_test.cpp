#include "tools/common/work_class.h"

#include <string_view>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

struct NameCase {
  std::string_view name;
  WorkClass work_class;
};

class WorkClassTest : public testing::TestWithParam<NameCase> {};

TEST_P(WorkClassTest, AKernelsNameTellsItsClass) {
  EXPECT_EQ(ClassOfEvent(TracedKind::kKernel, GetParam().name), GetParam().work_class);
}

// Names as torch.profiler shows them, cut behind what matters; CUTLASS types stand in attention's.
INSTANTIATE_TEST_SUITE_P(
    Names,
    WorkClassTest,
    testing::Values(
        NameCase{"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", WorkClass::kProducts},
        NameCase{"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>",
                 WorkClass::kProducts},
        NameCase{"void cublasLt::splitKreduce_kernel<32, 16, int>", WorkClass::kProducts},
        NameCase{"sm80_xmma_fprop_implicit_gemm_bf16bf16", WorkClass::kProducts},
        NameCase{"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::bfloat16_t>>",
                 WorkClass::kAttention},
        NameCase{"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26",
                 WorkClass::kAttention},
        NameCase{"void cudnn::fusion::convert_dq_to_16bits<true>", WorkClass::kAttention},
        NameCase{"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", WorkClass::kAttention},
        NameCase{"triton_poi_fused_add_copy_kernel_gemm_3", WorkClass::kTriton},
        NameCase{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                 WorkClass::kCollectives},
        NameCase{"multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMath",
                 WorkClass::kOptimizer},
        NameCase{"multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>",
                 WorkClass::kOther},
        NameCase{"at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)",
                 WorkClass::kCopies},
        NameCase{"at::native::FillFunctor<float>", WorkClass::kCopies},
        NameCase{"at::native::CatArrayBatchedCopy_vectorized<", WorkClass::kCopies},
        NameCase{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<", WorkClass::kOther},
        NameCase{"at::native::{lambda()#3}::operator()() const", WorkClass::kOther}));

TEST(WorkClassTest, CopiesToPeersAreCommunication) {
  EXPECT_EQ(ClassOfEvent(TracedKind::kCopy, "Memcpy DtoD (Device -> Device)"), WorkClass::kCopies);
  EXPECT_EQ(ClassOfEvent(TracedKind::kCopy, "Memcpy PtoP (Device -> Device)"),
            WorkClass::kCollectives);
  EXPECT_EQ(ClassOfEvent(TracedKind::kFill, "Memset (Device)"), WorkClass::kCopies);
}

TEST(WorkClassTest, ATritonKernelIsKnownWithoutItsNumber) {
  EXPECT_EQ(GroupOfEvent(WorkClass::kTriton, "triton_poi_fused_add_mul_12"),
            "triton_poi_fused_add_mul");
  EXPECT_EQ(GroupOfEvent(WorkClass::kTriton, "triton_poi_fused_add_mul"),
            "triton_poi_fused_add_mul");
}

TEST(WorkClassTest, AttentionIsKnownByItsDirection) {
  EXPECT_EQ(GroupOfEvent(WorkClass::kAttention, "cudnn_native_sdpa_sm90_flash_fprop_wgmma"),
            "attention, forward");
  EXPECT_EQ(GroupOfEvent(WorkClass::kAttention, "void cudnn::fusion::fmha_reduce_head<true>"),
            "attention, backward");
}

TEST(WorkClassTest, CollectivesAreKnownByTheirKind) {
  EXPECT_EQ(GroupOfEvent(WorkClass::kCollectives, "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"),
            "reduce_scatter");
  EXPECT_EQ(GroupOfEvent(WorkClass::kCollectives, "Memcpy PtoP (Device -> Device)"), "all_gather");
}

}  // namespace
}  // namespace dcsim
