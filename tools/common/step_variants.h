#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/ir/result.h"
#include "tools/common/step_options.h"

namespace dcsim {

/// One of several steps that are compared.
struct StepVariant {
  std::string label;  // for people: "stage=2, batch=4"
  StepOptions step;
};

/// What dc-sim simulate would say of a variant.
struct PredictedVariant {
  Result result;
  std::optional<Result> unlimited;  // of a step that runs out of memory: with kAmpleMemory
  bool profiled = false;            // op times of the GPU are in the recording's profile
  std::vector<std::string> notes;   // lines that loading it gave
  std::string refused;              // why the inputs are bad; then there is no result
};

/// Memory of a GPU on which a step that does not fit shows what it needs.
inline constexpr Bytes kAmpleMemory = Bytes::GiB(1024);

/// What the step reserves; where it runs out of memory, what it would with kAmpleMemory, which is
/// the most that it asks for: with less the allocator gives cache back. Nothing where that is too
/// little, or where the step stops for another reason.
std::optional<Bytes> ReservedMemory(const PredictedVariant& predicted);

/// What a variant with bad input does to the others: ends them, or nothing.
enum class OnRefusal : std::uint8_t { kStop, kKeep };

/// How variants are predicted.
struct VariantRun {
  unsigned threads = 1;
  OnRefusal on_refusal = OnRefusal::kStop;
  std::atomic<std::size_t>* done = nullptr;  // counts the variants that are predicted
};

/// Loads and predicts each variant as dc-sim simulate does. The answers are the same at any number
/// of threads. Throws Error for the first refused variant, with its label, unless refusals are
/// kept.
std::vector<PredictedVariant> PredictVariants(const std::vector<StepVariant>& variants,
                                              const VariantRun& run);

/// The lines of all notes, each once, in the order of the variants.
std::vector<std::string> NotesOf(const std::vector<PredictedVariant>& predicted);

}  // namespace dcsim
