#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "model/cost/attention_time.h"
#include "model/cost/batch_norm_time.h"
#include "model/cost/concatenation.h"
#include "model/cost/convolution_time.h"
#include "model/cost/copy_time.h"
#include "model/cost/element_time.h"
#include "model/cost/indexing_time.h"
#include "model/cost/kernel_traits.h"
#include "model/cost/launch_time.h"
#include "model/cost/norm_time.h"
#include "model/cost/pooling_time.h"
#include "model/cost/product_time.h"
#include "model/cost/reduction_time.h"
#include "model/cost/roofline.h"
#include "model/cost/softmax_time.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// The time of some kernels.
struct KernelModel {
  std::string_view name;
  /// Seconds of a kernel alone; none of one that the model does not know. Throws Error for a
  /// product in a dtype without a peak.
  std::optional<double> (*seconds)(const KernelTraits&, const GpuSpec&);
  bool fitted = true;  // asked only of GPUs whose file has `kernels`
};

/// In the order in which they are asked; the last one knows all.
inline constexpr auto kKernelModels = std::to_array<KernelModel>({
    {"triton", LaunchSeconds, /*fitted=*/false},
    {"product", ProductSeconds},
    {"convolution", ConvolutionSeconds},
    {"attention", AttentionSeconds},
    {"softmax", SoftmaxSeconds},
    {"norm", NormSeconds},
    {"batch norm", BatchNormSeconds},
    {"indexing", IndexingSeconds},
    {"copy", CopySeconds},
    {"pooling", PoolingSeconds},
    {"reduction", ReductionSeconds},
    {"elementwise", ElementSeconds},
    {"roofline", RooflineSeconds, /*fitted=*/false},
});

/// The numbers of the models: what a roofline of two rates leaves out, as far as it is known of a
/// GPU. Source: docs/design/costs.md.
struct KernelRates {
  double plain = 1;  // share of the bandwidth: dense tensors of one layout, also written shorter
  double gelu = 1;   // the same, computing so much for each element
  ElementRates elements_per_second;
  ReductionRates reduction;
  SoftmaxRates softmax;
  NormRates layer_norm;
  UnalignedNormRates unaligned_layer_norm;
  LayerNormBackwardRates layer_norm_backward;
  double lookups_per_second = 0;  // rows of an embedding
  double unaligned_lookups = 0;   // elements a second, of a table at no multiple of 16 bytes
  EmbeddingBackwardRates embedding_backward;
  ProductRates product;
  AttentionRates attention;
  AttentionBackwardRates attention_backward;
  EfficientAttentionRates efficient_attention;
  CudnnAttentionRates cudnn_attention;
  CudnnAttentionBackwardRates cudnn_attention_backward;
  IndexingRates indexing;
  GroupNormRates group_norm;
  GroupNormBackwardRates group_norm_backward;
  BatchNormRates batch_norm;
  BatchNormRates batch_norm_backward;
  BatchNormWriting batch_norm_writing;
  PoolingRates pooling;
  ConcatenationRates concatenation;
  ConvolutionRates convolution;

  static constexpr auto Fields() {
    return std::tuple(ShareField("plain", &KernelRates::plain),
                      ShareField("gelu", &KernelRates::gelu),
                      PartField("elements_per_second", &KernelRates::elements_per_second),
                      PartField("reduction", &KernelRates::reduction),
                      PartField("softmax", &KernelRates::softmax),
                      PartField("layer_norm", &KernelRates::layer_norm),
                      PartField("unaligned_layer_norm", &KernelRates::unaligned_layer_norm),
                      PartField("layer_norm_backward", &KernelRates::layer_norm_backward),
                      PositiveField("lookups_per_second", &KernelRates::lookups_per_second),
                      PositiveField("unaligned_lookups", &KernelRates::unaligned_lookups),
                      PartField("embedding_backward", &KernelRates::embedding_backward),
                      PartField("product", &KernelRates::product),
                      PartField("attention", &KernelRates::attention),
                      PartField("attention_backward", &KernelRates::attention_backward),
                      PartField("efficient_attention", &KernelRates::efficient_attention),
                      PartField("cudnn_attention", &KernelRates::cudnn_attention),
                      PartField("cudnn_attention_backward", &KernelRates::cudnn_attention_backward),
                      PartField("indexing", &KernelRates::indexing),
                      PartField("group_norm", &KernelRates::group_norm),
                      PartField("group_norm_backward", &KernelRates::group_norm_backward),
                      PartField("batch_norm", &KernelRates::batch_norm),
                      PartField("batch_norm_backward", &KernelRates::batch_norm_backward),
                      PartField("batch_norm_writing", &KernelRates::batch_norm_writing),
                      PartField("pooling", &KernelRates::pooling),
                      PartField("concatenation", &KernelRates::concatenation),
                      PartField("convolution", &KernelRates::convolution));
  }
};

/// Reads them from the keys of a GPU's `kernels`. Faults go to the reader's.
std::shared_ptr<const KernelRates> ReadKernelRates(ObjectReader& kernels);
/// The same from its `triton`.
std::shared_ptr<const TritonRates> ReadTritonRates(ObjectReader& triton);

/// Both, for ReadCluster.
inline constexpr KernelRatesReader kKernelRatesReader{ReadKernelRates, ReadTritonRates};

/// Time of a kernel alone that nobody has profiled, by the first of KernelModels that knows it,
/// rounded up to whole ns and at least the shortest kernel. Throws Error for a product in a dtype
/// without a peak.
Duration KernelTime(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
