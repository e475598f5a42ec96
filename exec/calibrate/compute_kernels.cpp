#include "exec/calibrate/compute_kernels.h"

#include <array>
#include <tuple>

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>

namespace dcsim::exec {
namespace {

at::TensorOptions OnGpu() {
  return at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
}

ComputeKernel Product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const at::Tensor a = at::randn({m, k}, OnGpu());
  const at::Tensor b = at::randn({k, n}, OnGpu());
  at::Tensor out = at::empty({m, n}, OnGpu());
  const std::string name =
      "mm " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  return {name, DeviceUse::kMatmul, m * n, {}, [a, b, out]() mutable { at::mm_out(out, a, b); }};
}

std::array<ComputeKernel, 2> Attention(std::int64_t batch,
                                       std::int64_t heads,
                                       std::int64_t sequence,
                                       std::int64_t width) {
  const std::vector<std::int64_t> shape = {batch, heads, sequence, width};
  const at::Tensor q = at::randn(shape, OnGpu());
  const at::Tensor k = at::randn(shape, OnGpu());
  const at::Tensor v = at::randn(shape, OnGpu());
  const auto forward = [q, k, v] {
    return at::_scaled_dot_product_flash_attention(q, k, v, 0.0, /*is_causal=*/true);
  };
  const auto result = forward();
  const auto backward = [q, k, v, result, sequence] {
    at::_scaled_dot_product_flash_attention_backward(
        std::get<0>(result), q, k, v, std::get<0>(result), std::get<1>(result), std::get<2>(result),
        std::get<3>(result), sequence, sequence, 0.0, /*is_causal=*/true, std::get<6>(result),
        std::get<7>(result));
  };
  const std::string name = "attention " + std::to_string(batch) + " x " + std::to_string(heads) +
                           " x " + std::to_string(sequence) + " x " + std::to_string(width);
  return {ComputeKernel{name, DeviceUse::kAttention, q.numel(), {}, [forward] { forward(); }},
          ComputeKernel{name + " backward", DeviceUse::kAttention, q.numel(), {}, backward}};
}

/// Of tensors of `mebibytes` each.
std::array<ComputeKernel, 4> Streaming(std::int64_t mebibytes) {
  constexpr std::int64_t kColumns = 4096;
  const std::int64_t rows = (mebibytes << 20) / 2 / kColumns;
  const at::Tensor a = at::randn({rows, kColumns}, OnGpu());
  at::Tensor out = at::empty_like(a);
  at::Tensor sums = at::empty({rows, 1}, OnGpu());
  const at::Tensor two = at::scalar_tensor(2, at::kFloat);  // of the host: a constant of the kernel
  const std::string size = " " + std::to_string(mebibytes) + " MiB";
  const std::int64_t elements = rows * kColumns;
  const Bytes bytes = Bytes::MiB(mebibytes);
  return {ComputeKernel{"add" + size,
                        DeviceUse::kStreaming,
                        elements,
                        {bytes, bytes},
                        [a, out]() mutable { at::add_out(out, a, a); }},
          ComputeKernel{"mul" + size,
                        DeviceUse::kStreaming,
                        elements,
                        {bytes, bytes},
                        [a, out, two]() mutable { at::mul_out(out, a, two); }},
          ComputeKernel{"softmax" + size,
                        DeviceUse::kStreaming,
                        elements,
                        {bytes, bytes},
                        [a, out]() mutable { at::_softmax_out(out, a, 1, false); }},
          ComputeKernel{
              "sum" + size, DeviceUse::kStreaming, rows, {bytes, Bytes()}, [a, sums]() mutable {
                at::sum_out(sums, a, 1, /*keepdim=*/true);
              }}};
}

}  // namespace

std::vector<ComputeKernel> ComputeKernels() {
  std::vector<ComputeKernel> kernels;
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{2048, 2048, 8192},
                                                                        {4096, 1024, 4096},
                                                                        {4096, 4096, 4096},
                                                                        {4096, 6144, 4096},
                                                                        {4096, 12288, 4096},
                                                                        {8192, 8192, 2048},
                                                                        {1024, 6400, 1600},
                                                                        {4096, 1600, 6400},
                                                                        {2816, 3072, 4096}}) {
    kernels.push_back(Product(m, n, k));
  }
  for (const auto& [batch, heads, sequence, width] :
       std::vector<std::array<std::int64_t, 4>>{{1, 32, 4096, 128}, {4, 32, 2048, 64}}) {
    for (ComputeKernel& kernel : Attention(batch, heads, sequence, width)) {
      kernels.push_back(std::move(kernel));
    }
  }
  for (const std::int64_t mebibytes : {1, 8, 32, 256}) {
    for (ComputeKernel& kernel : Streaming(mebibytes)) {
      kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

}  // namespace dcsim::exec
