#include "model/cost/kernel_rates_reader.h"

#include <functional>

#include "model/cost/machine_fields.h"

namespace dcsim {
namespace {

/// A required object; `read` takes all its keys.
void ReadPart(ObjectReader& object,
              std::string_view key,
              const std::function<void(ObjectReader&)>& read) {
  const Json* value = object.Require(key);
  if (value == nullptr) {
    return;
  }
  const Path path = object.At(key);
  ObjectReader fields(*value, path, object.faults());
  read(fields);
  fields.RejectUnknown();
}

/// A required object into `rates`, by the reader of its kind.
template <typename Rates>
void ReadPart(ObjectReader& object,
              std::string_view key,
              void (*read)(ObjectReader&, Rates&),
              Rates& rates) {
  ReadPart(object, key, [&](ObjectReader& fields) { read(fields, rates); });
}

void ReadElementRates(ObjectReader& fields, ElementRates& rates) {
  ReadPositive(fields, "alike", rates.alike);
  ReadPositive(fields, "broadcast", rates.broadcast);
  ReadPositive(fields, "permuted", rates.permuted);
  ReadPositive(fields, "converted", rates.converted);
  ReadPositive(fields, "transposed", rates.transposed);
  ReadPositive(fields, "concatenated", rates.concatenated);
  ReadPositive(fields, "rolled", rates.rolled);
  ReadPositive(fields, "filled", rates.filled);
}

void ReadReductionRates(ObjectReader& fields, ReductionRates& rates) {
  ReadShare(fields, "share", rates.share);
  fields.Required("start", ReadTime, rates.start);
  fields.Required("wave", ReadTime, rates.wave);
  fields.Required("values", ReadTime, rates.values);
  fields.Required("stage", ReadTime, rates.stage);
  fields.Required("part", ReadTime, rates.part);
}

void ReadSoftmaxRates(ObjectReader& fields, SoftmaxRates& rates) {
  ReadShare(fields, "middle_rows", rates.middle_rows);
  ReadShare(fields, "long_rows", rates.long_rows);
  ReadShare(fields, "long_rows_backward", rates.long_rows_backward);
  ReadPositive(fields, "short_elements_per_second", rates.short_elements_per_second);
  fields.Required("block", ReadTime, rates.block);
}

void ReadNormRates(ObjectReader& fields, NormRates& rates) {
  ReadShare(fields, "share", rates.share);
  ReadPositive(fields, "rows_per_second", rates.rows_per_second);
}

void ReadUnalignedNorm(ObjectReader& fields, UnalignedNormRates& rates) {
  ReadPositive(fields, "rows_per_second", rates.rows_per_second);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
}

void ReadEmbeddingBackward(ObjectReader& fields, EmbeddingBackwardRates& rates) {
  fields.Required("index", ReadTime, rates.index);
  fields.Required("sort", ReadTime, rates.sort);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
}

void ReadProductRates(ObjectReader& fields, ProductRates& rates) {
  fields.Required("start", ReadTime, rates.start);
  if (fields.Required("tile", ReadNumber, rates.tile) && !(rates.tile >= 0)) {
    fields.faults().Add(fields.At("tile"), "expected 0 or more");
  }
  ReadShare(fields, "unaligned", rates.unaligned);
  ReadShare(fields, "unaligned_transposed", rates.unaligned_transposed);
  ReadShare(fields, "half_aligned", rates.half_aligned);
  ReadShare(fields, "float32", rates.float32);
  ReadShare(fields, "grouped", rates.grouped);
  ReadPositive(fields, "vectors_per_second", rates.vectors_per_second);
  ReadPositive(fields, "outer_elements_per_second", rates.outer_elements_per_second);
}

void ReadEfficientAttention(ObjectReader& fields, EfficientAttentionRates& rates) {
  ReadShare(fields, "forward", rates.forward);
  ReadShare(fields, "backward", rates.backward);
  ReadShare(fields, "wide_forward", rates.wide_forward);
  ReadShare(fields, "wide_backward", rates.wide_backward);
  fields.Required("block", ReadTime, rates.block);
  fields.Required("block_backward", ReadTime, rates.block_backward);
}

void ReadGroupNorm(ObjectReader& fields, GroupNormRates& rates) {
  fields.Required("start", ReadTime, rates.start);
  ReadPositive(fields, "blocks_per_second", rates.blocks_per_second);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
  ReadPositive(fields, "group_elements_per_second", rates.group_elements_per_second);
  ReadPositive(fields, "written_per_second", rates.written_per_second);
}

void ReadGroupNormBackward(ObjectReader& fields, GroupNormBackwardRates& rates) {
  fields.Required("start", ReadTime, rates.start);
  fields.Required("image", ReadTime, rates.image);
  ReadPositive(fields, "blocks_per_second", rates.blocks_per_second);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
  ReadPositive(fields, "short_blocks_per_second", rates.short_blocks_per_second);
  ReadPositive(fields, "short_elements_per_second", rates.short_elements_per_second);
  ReadPositive(fields, "written_per_second", rates.written_per_second);
}

void ReadBatchNorm(ObjectReader& fields, BatchNormRates& rates) {
  fields.Required("block", ReadTime, rates.block);
  fields.Required("round", ReadTime, rates.round);
  fields.Required("cached_round", ReadTime, rates.cached_round);
  fields.Required("busy_round", ReadTime, rates.busy_round);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
  ReadPositive(fields, "apart_per_second", rates.apart_per_second);
}

void ReadBatchNormWriting(ObjectReader& fields, BatchNormWriting& rates) {
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
  ReadPositive(fields, "blocks_per_second", rates.blocks_per_second);
}

void ReadPooling(ObjectReader& fields, PoolingRates& rates) {
  ReadPositive(fields, "forward", rates.forward);
  ReadPositive(fields, "backward", rates.backward);
  ReadPositive(fields, "maximum", rates.maximum);
  ReadPositive(fields, "maximum_backward", rates.maximum_backward);
  ReadPositive(fields, "unfolded", rates.unfolded);
  ReadPositive(fields, "folded", rates.folded);
}

void ReadIndexing(ObjectReader& fields, IndexingRates& rates) {
  ReadPositive(fields, "gathered", rates.gathered);
  ReadPositive(fields, "scatter_added", rates.scatter_added);
  fields.Required("sort", ReadTime, rates.sort);
  fields.Required("put", ReadTime, rates.put);
  fields.Required("put_few", ReadTime, rates.put_few);
  ReadPositive(fields, "elements_per_second", rates.elements_per_second);
  fields.Required("same_row", ReadTime, rates.same_row);
  ReadPositive(fields, "single_elements_per_second", rates.single_elements_per_second);
  ReadPositive(fields, "single_sums_per_second", rates.single_sums_per_second);
  ReadPositive(fields, "looked_up", rates.looked_up);
}

void ReadConcatenation(ObjectReader& fields, ConcatenationRates& rates) {
  fields.Required("start", ReadTime, rates.start);
  ReadPositive(fields, "blocks_per_second", rates.blocks_per_second);
  ReadShare(fields, "unaligned", rates.unaligned);
  ReadShare(fields, "unaligned_part", rates.unaligned_part);
  ReadShare(fields, "hidden", rates.hidden);
}

void ReadPlanarDepthwise(ObjectReader& fields, PlanarDepthwiseRates& rates) {
  ReadPositive(fields, "element", rates.element);
  ReadPositive(fields, "row", rates.row);
  ReadPositive(fields, "tap", rates.tap);
  ReadPositive(fields, "unrolled_element", rates.unrolled_element);
  ReadPositive(fields, "unrolled_tap", rates.unrolled_tap);
}

void ReadUnalignedWeight(ObjectReader& fields, UnalignedWeightRates& rates) {
  ReadPositive(fields, "block", rates.block);
  ReadPositive(fields, "channel", rates.channel);
  ReadPositive(fields, "lone_channel", rates.lone_channel);
  ReadPositive(fields, "narrow_block", rates.narrow_block);
  ReadPositive(fields, "narrow_channel", rates.narrow_channel);
  ReadPositive(fields, "element", rates.element);
  ReadPositive(fields, "uneven_element", rates.uneven_element);
}

void ReadConvolution(ObjectReader& fields, ConvolutionRates& rates) {
  ReadShare(fields, "forward", rates.forward);
  ReadShare(fields, "backward", rates.backward);
  ReadShare(fields, "images", rates.images);
  ReadShare(fields, "few_channels", rates.few_channels);
  ReadShare(fields, "few_channels_planar", rates.few_channels_planar);
  ReadPart(fields, "unaligned_weight", ReadUnalignedWeight, rates.unaligned_weight);
  ReadShare(fields, "half_aligned", rates.half_aligned);
  ReadShare(fields, "unaligned", rates.unaligned);
  ReadPositive(fields, "depthwise", rates.depthwise);
  ReadPositive(fields, "depthwise_input", rates.depthwise_input);
  ReadPositive(fields, "depthwise_weight", rates.depthwise_weight);
  ReadPart(fields, "planar_depthwise", ReadPlanarDepthwise, rates.planar_depthwise);
  ReadPart(fields, "planar_depthwise_backward", ReadPlanarDepthwise,
           rates.planar_depthwise_backward);
  fields.Required("depthwise_image", ReadTime, rates.depthwise_image);
  fields.Required("depthwise_round", ReadTime, rates.depthwise_round);
  fields.Required("backward_pass", ReadTime, rates.backward_pass);
  fields.Required("group", ReadTime, rates.group);
  fields.Required("image_sum", ReadTime, rates.image_sum);
  ReadPositive(fields, "layout", rates.layout);
  ReadPositive(fields, "weight_layout", rates.weight_layout);
  ReadPositive(fields, "few_channels_layout", rates.few_channels_layout);
}

void ReadAttention(ObjectReader& fields, AttentionRates& rates) {
  fields.Required("block", ReadTime, rates.block);
  fields.Required("diagonal", ReadTime, rates.diagonal);
  if (fields.Required("tail", ReadNumber, rates.tail) && !(rates.tail >= 0 && rates.tail <= 1)) {
    fields.faults().Add(fields.At("tail"), "expected a share, 0 to 1");
  }
}

void ReadAttentionEnds(ObjectReader& fields, AttentionEnds& rates) {
  ReadShare(fields, "conversion", rates.conversion);
  ReadShare(fields, "head_sums", rates.head_sums);
}

void ReadCudnnAttention(ObjectReader& fields, CudnnAttentionRates& rates) {
  fields.Required("pair", ReadTime, rates.pair);
  fields.Required("pair_head", ReadTime, rates.pair_head);
  fields.Required("block", ReadTime, rates.block);
  fields.Required("block_head", ReadTime, rates.block_head);
  fields.Required("start", ReadTime, rates.start);
  ReadPositive(fields, "uneven", rates.uneven);
  ReadPositive(fields, "masked", rates.masked);
  ReadPositive(fields, "wide", rates.wide);
  ReadPositive(fields, "wide_masked", rates.wide_masked);
}

void ReadTriton(ObjectReader& fields, TritonRates& rates) {
  ReadShare(fields, "pointwise", rates.pointwise);
  ReadShare(fields, "reduction", rates.reduction);
  ReadShare(fields, "persistent_reduction", rates.persistent_reduction);
  ReadPositive(fields, "trigonometric_per_second", rates.trigonometric_per_second);
  ReadPositive(fields, "online_softmax_per_second", rates.online_softmax_per_second);
  fields.Required("start", ReadDuration, rates.start);
}

}  // namespace

KernelRates ReadKernelRates(ObjectReader& fields) {
  KernelRates rates;
  ReadShare(fields, "plain", rates.plain);
  ReadShare(fields, "gelu", rates.gelu);
  ReadPart(fields, "elements_per_second", ReadElementRates, rates.elements_per_second);
  ReadPart(fields, "reduction", ReadReductionRates, rates.reduction);
  ReadPart(fields, "softmax", ReadSoftmaxRates, rates.softmax);
  ReadPart(fields, "layer_norm", ReadNormRates, rates.layer_norm);
  ReadPart(fields, "unaligned_layer_norm", ReadUnalignedNorm, rates.unaligned_layer_norm);
  ReadPart(fields, "layer_norm_backward", [&](ObjectReader& inner) {
    ReadNormRates(inner, rates.layer_norm_backward);
    ReadPositive(inner, "columns_per_second", rates.layer_norm_columns_per_second);
  });
  ReadPositive(fields, "lookups_per_second", rates.lookups_per_second);
  ReadPositive(fields, "unaligned_lookups", rates.unaligned_lookups);
  ReadPart(fields, "embedding_backward", ReadEmbeddingBackward, rates.embedding_backward);
  ReadPart(fields, "product", ReadProductRates, rates.product);
  ReadPart(fields, "attention", ReadAttention, rates.attention);
  ReadPart(fields, "attention_backward", [&](ObjectReader& inner) {
    ReadAttention(inner, rates.attention_backward);
    ReadAttentionEnds(inner, rates.attention_ends);
  });
  ReadPart(fields, "efficient_attention", ReadEfficientAttention, rates.efficient_attention);
  ReadPart(fields, "cudnn_attention", ReadCudnnAttention, rates.cudnn_attention);
  ReadPart(fields, "cudnn_attention_backward", [&](ObjectReader& inner) {
    ReadCudnnAttention(inner, rates.cudnn_attention_backward);
    ReadAttentionEnds(inner, rates.cudnn_attention_ends);
  });
  ReadPart(fields, "indexing", ReadIndexing, rates.indexing);
  ReadPart(fields, "group_norm", ReadGroupNorm, rates.group_norm);
  ReadPart(fields, "group_norm_backward", ReadGroupNormBackward, rates.group_norm_backward);
  ReadPart(fields, "batch_norm", ReadBatchNorm, rates.batch_norm);
  ReadPart(fields, "batch_norm_backward", ReadBatchNorm, rates.batch_norm_backward);
  ReadPart(fields, "batch_norm_writing", ReadBatchNormWriting, rates.batch_norm_writing);
  ReadPart(fields, "pooling", ReadPooling, rates.pooling);
  ReadPart(fields, "concatenation", ReadConcatenation, rates.concatenation);
  ReadPart(fields, "convolution", ReadConvolution, rates.convolution);
  if (TritonRates triton;
      fields.OptionalObject("triton", [&](ObjectReader& inner) { ReadTriton(inner, triton); })) {
    rates.triton = triton;
  }
  return rates;
}

}  // namespace dcsim
