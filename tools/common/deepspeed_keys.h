#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/text.h"

namespace dcsim {

/// GRADIENT_CLIPPING_DEFAULT of deepspeed/runtime/constants.py in 0.19.8.
inline constexpr double kDeepSpeedClipping = 1.0;

/// What a key of DeepSpeed's means for a schedule.
enum class KeyMeaning : std::uint8_t {
  kRead,     // becomes an option
  kIgnored,  // has no effect on a compiled step's time or memory, or none that plans describe
  kRefused,  // changes the schedule in a way that is not modelled, unless it is off
};

/// A key of DeepSpeed's configuration.
struct DeepSpeedKey {
  std::string_view name;
  KeyMeaning meaning = KeyMeaning::kIgnored;
};

// deepspeed/runtime/zero/config.py of 0.19.8, aliases included.
inline constexpr std::array<DeepSpeedKey, 52> kZeroKeys = {{
    {"stage", KeyMeaning::kRead},
    {"reduce_bucket_size", KeyMeaning::kRead},
    {"offload_param", KeyMeaning::kRefused},
    {"offload_optimizer", KeyMeaning::kRefused},
    {"cpu_offload", KeyMeaning::kRefused},
    {"cpu_offload_param", KeyMeaning::kRefused},
    {"cpu_offload_use_pin_memory", KeyMeaning::kRefused},
    {"zenflow", KeyMeaning::kRefused},
    {"zero_hpz_partition_size", KeyMeaning::kRefused},
    {"zero_quantized_weights", KeyMeaning::kRefused},
    {"zero_quantized_nontrainable_weights", KeyMeaning::kRefused},
    {"zero_quantized_gradients", KeyMeaning::kRefused},
    {"parameter_alignment", KeyMeaning::kRefused},
    {"contiguous_gradients"},
    {"reduce_scatter"},
    {"use_multi_rank_bucket_allreduce"},
    {"allgather_partitions"},
    {"allgather_bucket_size"},
    {"overlap_comm"},
    {"compute_grad_norm"},
    {"load_from_fp32_weights"},
    {"elastic_checkpoint"},
    {"sub_group_size"},
    {"stage3_prefetch_bucket_size"},
    {"prefetch_bucket_size"},
    {"stage3_param_persistence_threshold"},
    {"param_persistence_threshold"},
    {"stage3_model_persistence_threshold"},
    {"model_persistence_threshold"},
    {"stage3_max_live_parameters"},
    {"max_live_parameters"},
    {"stage3_max_reuse_distance"},
    {"max_reuse_distance"},
    {"stage3_gather_16bit_weights_on_model_save"},
    {"gather_16bit_weights_on_model_save"},
    {"stage3_module_granularity_threshold"},
    {"stage3_use_all_reduce_for_fetch_params"},
    {"stage3_allgather_sequential"},
    {"ignore_unused_parameters"},
    {"legacy_stage1"},
    {"round_robin_gradients"},
    {"memory_efficient_linear"},
    {"pipeline_loading_checkpoint"},
    {"override_module_apply"},
    {"log_trace_cache_warnings"},
    {"leaf_module"},
    {"allgather_sequential"},
    {"enable_sanity_checks"},
    {"module_granularity_threshold"},
    {"save_muon_momentum_buffer_in_memory"},
    {"stage3_gather_fp16_weights_on_model_save"},
    {"use_all_reduce_for_fetch_params"},
}};

// deepspeed/compile/config.py of 0.19.8.
inline constexpr std::array<DeepSpeedKey, 18> kCompileKeys = {{
    {"deepcompile", KeyMeaning::kRead},
    {"double_buffer", KeyMeaning::kRead},
    {"offload_activation", KeyMeaning::kRead},
    {"offload_opt_states", KeyMeaning::kRead},
    {"offload_parameters", KeyMeaning::kRefused},
    {"free_activation", KeyMeaning::kRefused},
    {"sync_before_reduce", KeyMeaning::kRefused},
    {"sync_after_reduce", KeyMeaning::kRefused},
    {"sync_before_allgather", KeyMeaning::kRefused},
    {"sync_after_allgather", KeyMeaning::kRefused},
    {"passes", KeyMeaning::kRefused},
    {"autoep_non_moe"},
    {"free_activation_threshold"},
    {"offload_activation_pin_memory"},
    {"symmetric_memory"},
    {"debug_log"},
    {"keep_int_input_tensors"},
    {"keep_all_input_tensors"},
}};

// The top level, where DeepSpeed takes any key: those with a meaning here.
inline constexpr std::array<DeepSpeedKey, 16> kTopKeys = {{
    {"zero_optimization", KeyMeaning::kRead},
    {"compile", KeyMeaning::kRead},
    {"gradient_accumulation_steps", KeyMeaning::kRead},
    {"gradient_clipping", KeyMeaning::kRead},
    {"train_batch_size", KeyMeaning::kRead},
    {"train_micro_batch_size_per_gpu", KeyMeaning::kRead},
    {"bf16"},
    {"fp16"},
    {"optimizer"},
    {"scheduler"},
    {"steps_per_print"},
    {"wall_clock_breakdown"},
    {"zero_allow_untested_optimizer"},
    {"gradient_predivide_factor", KeyMeaning::kRefused},
    {"communication_data_type", KeyMeaning::kRefused},
    {"data_types"},
}};

/// The key of that name, or null.
template <std::size_t kCount>
const DeepSpeedKey* FindKey(const std::array<DeepSpeedKey, kCount>& keys, std::string_view name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [name](const DeepSpeedKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

/// ", did you mean 'x'?" among the keys.
template <std::size_t kCount>
std::string Nearest(const std::array<DeepSpeedKey, kCount>& keys, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(keys.size());
  for (const DeepSpeedKey& key : keys) {
    names.push_back(key.name);
  }
  return DidYouMean(name, names);
}

}  // namespace dcsim
