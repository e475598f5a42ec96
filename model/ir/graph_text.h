#pragma once

#include <string>
#include <string_view>

#include "model/ir/graph.h"

namespace dcsim {

/// Reads a small graph from lines that a test can show, and checks it like a recorded one:
///
///   graph two-layers 32 tokens
///   param w1 bfloat16[64,64]
///   param w2 bfloat16[64,64] frozen
///   input x bfloat16[32,64]
///   forward
///     a: bfloat16[32,64] = aten::mm(x, w1) @layers.0
///     v: bfloat16[64,32] views a = aten::t(a)
///     l: float32[], _ = aten::nll_loss_forward(v)
///     loss l
///     output v as logits held
///     save a
///     # with graph breaks: "receive a" and "pass g of a" link one graph to the next
///   backward of 0
///     tangent t: float32[] of l
///     g: bfloat16[64,64] = aten::mm(t, a)
///     gradient w1 = g
///
/// A value after "views NAME" lies in NAME's storage; every other value gets a storage of its own,
/// just large enough. "_" is a return that nothing uses. Indentation is free, "#" starts a comment.
/// Arguments that are no tensors are left out; the operator's schema is made to fit.
///
/// Throws Error "`file`:line: …" for the first line that is wrong.
Graph ParseGraphText(std::string_view text, const std::string& file = "graph");

}  // namespace dcsim
