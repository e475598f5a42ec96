#pragma once

#include <optional>

#include "model/base/units.h"

namespace dcsim {

/// What fused attention takes besides its FLOPs: thread blocks of 128 queries (in the backward,
/// keys) share the multiprocessors, each goes over the other side in blocks of 128.
struct AttentionRates {
  Duration block;     // of a thread block, however much it goes over
  Duration diagonal;  // more of one where attention is causal
  double tail = 0;    // of the longest block: time in which other multiprocessors have run out
};

/// What stands behind an attention's backward, as shares of the bandwidth.
struct AttentionEnds {
  double conversion = 1;  // of the query's gradient from float32
  double head_sums = 1;   // of key gradients over the query heads of one key head
};

/// Elements a second that kernels write which go element by element, of whatever dtype, by what
/// keeps them from going in whole vectors.
struct ElementRates {
  double alike = 0;         // an operand has another layout, or a shorter dtype
  double broadcast = 0;     // in half precision, an operand is broadcast or has holes
  double permuted = 0;      // several whole operands, of different layouts
  double converted = 0;     // several operands, of different dtypes
  double transposed = 0;    // neighbours in the result are no neighbours in an operand
  double concatenated = 0;  // of parts that are not contiguous
  double rolled = 0;        // shifted along one dimension
  double filled = 0;        // with one value, unless the bandwidth is less
};

/// Sums, means and their like (ReduceShape).
struct ReductionRates {
  double share = 1;  // of the bandwidth
  Duration start;
  Duration wave;    // of thread blocks that fill the GPU
  Duration values;  // of the four values that a thread adds at a time, at least
  Duration stage;   // where thread blocks share an output: writing parts, meeting, adding them
  Duration part;    // of it, for each of an output's parts
};

/// Shares of the bandwidth that softmax and its logarithm reach; rows of 1,024 elements or fewer
/// are dense memory work.
struct SoftmaxRates {
  double middle_rows = 1;  // of up to 2,048 elements
  double long_rows = 1;
  double long_rows_backward = 1;
  Duration block;  // of a thread block a row: longer rows that fill no multiple of 16 bytes
  double short_elements_per_second = 0;  // of up to 1,024 elements in half precision, each row
                                         // filled up to a power of two
};

/// Layer norms: one thread block a row.
struct NormRates {
  double share = 1;  // of the bandwidth
  double rows_per_second = 0;
};

/// Layer norms whose weight or bias begins where no four elements do: each row and each element
/// takes its time.
struct UnalignedNormRates {
  double rows_per_second = 0;
  double elements_per_second = 0;
};

/// Gradients of an embedding's table, beside filling it with zeros.
struct EmbeddingBackwardRates {
  Duration index;                  // each, where they are few and added one after the other
  Duration sort;                   // of many
  double elements_per_second = 0;  // added up then
};

/// Attention of the memory-efficient kernels in half precision: shares of the peak over blocks of
/// 64 queries and 64 keys, and what a thread block takes besides, however much it goes over.
struct EfficientAttentionRates {
  double forward = 1;
  double backward = 1;
  double wide_forward = 1;  // heads of more than 128 elements
  double wide_backward = 1;
  Duration block;           // of 64 queries
  Duration block_backward;  // of 64 keys
};

/// Attention of cuDNN's kernels in half precision. A thread block takes 128 queries (in the
/// backward, keys) over the other side in blocks of 128; heads count in steps of 64 elements.
struct CudnnAttentionRates {
  Duration pair;           // of 128 queries and 128 keys, whatever the head
  Duration pair_head;      // the same, for each 64 elements of a head
  Duration block;          // a thread block, besides its pairs
  Duration block_head;     // the same, for each 64 elements of a head
  Duration start;          // a call
  double uneven = 1;       // a pair takes so many times as long where keys fill no block
  double masked = 1;       // … where a mask is added
  double wide = 1;         // … with heads of more than 128 elements
  double wide_masked = 1;  // … with such heads and a mask, beside `wide`
};

/// Elements that indices name.
struct IndexingRates {
  double gathered = 0;                    // elements a second of gather, and of scatter
  double scatter_added = 0;               // of scatter_add, in atomic additions
  Duration sort;                          // of some ten thousand keys, however few
  Duration put;                           // of index_put: looking for indices outside, and sorting
  Duration put_few;                       // … of up to 3,072 indices, a tensor of them
  double elements_per_second = 0;         // added by it, in rows
  Duration same_row;                      // each more that is added to one row of the table
  double single_elements_per_second = 0;  // … one by one, where an index names no row
  double single_sums_per_second = 0;      // … elements that they are added to
  double looked_up = 0;                   // of index, one by one
};

/// Group norms, in several kernels.
struct GroupNormRates {
  Duration start;                        // besides what follows
  double blocks_per_second = 0;          // thread blocks, each of which sums a group
  double elements_per_second = 0;        // that they sum
  double group_elements_per_second = 0;  // of one group alone
  double written_per_second = 0;         // elements
};

/// … their backward.
struct GroupNormBackwardRates {
  Duration start;
  Duration image;                // of the sums for weight and bias; half as long for short channels
  double blocks_per_second = 0;  // thread blocks, each of which sums an image's channel
  double elements_per_second = 0;      // that they sum
  double short_blocks_per_second = 0;  // the same where a channel has fewer than 256
  double short_elements_per_second = 0;
  double written_per_second = 0;
};

/// Batch norms, a thread block a channel (BatchNormSeconds).
struct BatchNormRates {
  Duration block;                  // of a thread block, besides its rounds
  Duration round;                  // of all its threads: until memory answers
  Duration cached_round;           // … or the L2 cache
  Duration busy_round;             // that a round keeps its neighbours on the multiprocessor
  double elements_per_second = 0;  // where channels are last
  double apart_per_second = 0;     // … of what is neither that nor contiguous
};

/// What stands behind the sums of a batch norm.
struct BatchNormWriting {
  double elements_per_second = 0;
  double blocks_per_second = 0;  // thread blocks, however little they write
};

/// Windows: elements of all of them a second.
struct PoolingRates {
  double forward = 0;  // means
  double backward = 0;
  double maximum = 0;
  double maximum_backward = 0;
  double unfolded = 0;  // im2col
  double folded = 0;    // col2im
};

/// at::cat, a kernel for each 128 parts at most (ConcatenationTime).
struct ConcatenationRates {
  Duration start;                // a kernel
  double blocks_per_second = 0;  // thread blocks that find nothing to copy
  double unaligned = 1;          // share of the bandwidth where a part begins between multiples
                                 // of 16 bytes
  double unaligned_part = 1;     // … of one such part, which gets few thread blocks
  double hidden = 0;             // of the shorter of copying and empty thread blocks: beside the
                                 // other
};

/// A convolution of each channel alone where channels are not last: picoseconds that the whole GPU
/// takes for an element that is made.
struct PlanarDepthwiseRates {
  double element = 0;
  double row = 0;               // of the window
  double tap = 0;               // element of the window
  double unrolled_element = 0;  // windows of 3 x 3 and 5 x 5
  double unrolled_tap = 0;
};

/// A pass that reads the weight of kernels of one element at no multiple of 16 bytes. Picoseconds
/// of a multiprocessor for each thread block that it has, and of the GPU for each element.
struct UnalignedWeightRates {
  double block = 0;           // forward, beside its depth
  double channel = 0;         // of its depth: of the channels that are added up
  double lone_channel = 0;    // … where no other block runs beside it
  double narrow_block = 0;    // forward, of fewer than 32 channels made
  double narrow_channel = 0;  // … of its depth
  double element = 0;         // of the input's gradient, rows of places at multiples of 16 bytes
  double uneven_element = 0;  // … other rows
};

/// Convolutions in half precision, and what stands before and behind them.
struct ConvolutionRates {
  double forward = 1;       // share of the peak
  double backward = 1;      // the same
  double images = 1;        // … of products of an image each
  double few_channels = 1;  // of the peak, of fewer than eight channels in that are filled up
  double few_channels_planar = 1;  // … where they need not be brought last
  UnalignedWeightRates unaligned_weight;
  double half_aligned = 1;  // … with kernels of one element over channels that are not last and
                            // begin at multiples of 4 or 8 bytes but not of 16
  double unaligned = 1;     // … at odd multiples of 2 bytes
  double depthwise = 0;     // multiply-adds a second, each channel alone
  double depthwise_input = 0;   // the same, of the input's gradient
  double depthwise_weight = 0;  // … of the weight's
  PlanarDepthwiseRates planar_depthwise;
  PlanarDepthwiseRates planar_depthwise_backward;  // of the input's gradient
  Duration depthwise_image;  // of the weight's, planar: a thread block's round of images, …
  Duration depthwise_round;  // … each 32 of their elements
  Duration backward_pass;    // besides its products
  Duration group;            // of a pass, of several
  Duration image_sum;        // adding an image's gradient of the weight, kernels of one element
  double layout = 0;         // elements a second that change between layouts
  double weight_layout = 0;  // the same, of weights
  double few_channels_layout = 0;  // the same, of images of fewer than 8 channels
};

struct ProductRates {
  Duration start;           // besides FLOPs and the writing of the result
  double tile = 0;          // elements: an a x b tile is slower by tile / a + tile / b (ProductUse)
  double half_aligned = 1;  // of the peak where rows begin at multiples of 4 or 8 bytes but not of
                            // 16: large products (SlowProductShare)
  double unaligned = 1;     // … at odd multiples of 2 bytes
  double unaligned_transposed = 1;       // … and the second factor is transposed
  double float32 = 1;                    // … of float32's
  double grouped = 1;                    // of the peak: experts, each with rows of its own
  double vectors_per_second = 0;         // of a batch, matrices times a vector each
  double outer_elements_per_second = 0;  // … and products of two vectors
};

/// Triton kernels that Inductor writes: shares of the bandwidth by kind, and what they compute.
struct TritonRates {
  double pointwise = 1;
  double reduction = 1;
  double persistent_reduction = 1;
  double trigonometric_per_second = 0;   // sines and cosines
  double online_softmax_per_second = 0;  // elements of softmaxes put together while they are read
  Duration start;                        // of any of them
};

/// What a roofline of two rates leaves out, as far as it is known of a GPU. Source:
/// docs/design/costs.md.
struct KernelRates {
  double plain = 1;  // share of the bandwidth: dense tensors of one layout, also written shorter
  double gelu = 1;   // the same, computing so much for each element
  ElementRates elements_per_second;
  ReductionRates reduction;
  SoftmaxRates softmax;
  NormRates layer_norm;
  UnalignedNormRates unaligned_layer_norm;
  NormRates layer_norm_backward;             // of the gradient of its input
  double layer_norm_columns_per_second = 0;  // rows of the sums for weight and bias, a wave
  double lookups_per_second = 0;             // rows of an embedding
  double unaligned_lookups = 0;  // elements a second, of a table at no multiple of 16 bytes
  EmbeddingBackwardRates embedding_backward;
  ProductRates product;
  AttentionRates attention;
  AttentionRates attention_backward;
  AttentionEnds attention_ends;
  EfficientAttentionRates efficient_attention;
  CudnnAttentionRates cudnn_attention;
  CudnnAttentionRates cudnn_attention_backward;
  AttentionEnds cudnn_attention_ends;
  IndexingRates indexing;
  GroupNormRates group_norm;
  GroupNormBackwardRates group_norm_backward;
  BatchNormRates batch_norm;
  BatchNormRates batch_norm_backward;
  BatchNormWriting batch_norm_writing;
  PoolingRates pooling;
  ConcatenationRates concatenation;
  ConvolutionRates convolution;
  std::optional<TritonRates> triton;
};

}  // namespace dcsim
