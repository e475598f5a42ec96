#include "tests/sim/random_step.h"

#include <algorithm>
#include <random>
#include <vector>

#include "model/graph/sharding.h"
#include "model/graph/step_facts.h"
#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"

namespace dcsim {
namespace {

/// Numbers that are the same on every machine (distributions of the standard library are not).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::size_t Below(std::size_t count) { return random_() % count; }
  bool OneIn(std::size_t count) { return Below(count) == 0; }

 private:
  std::mt19937_64 random_;
};

std::string Name(const std::string& letter, std::size_t number) {
  return letter + std::to_string(number);
}

/// One layer: h(i+1) = h(i) w, and perhaps a bias and a view behind it.
struct Layer {
  std::size_t weight = 0;  // an earlier layer's when tied
  bool biased = false;
  bool viewed = false;
  bool recomputed = false;
  std::string dtype;  // of its parameters
  std::string in;
  std::string product;  // without bias and view
  std::string out;
};

/// Writes the lines of one random graph.
class GraphWriter {
 public:
  explicit GraphWriter(std::uint64_t seed) : dice_(seed) {
    constexpr std::size_t kWidths[] = {8, 60, 256, 1000};
    width_ = std::to_string(kWidths[dice_.Below(4)]);
    rows_ = std::to_string(1 + dice_.Below(300));
    layers_.resize(1 + dice_.Below(6));
    cut_ = dice_.OneIn(3) ? dice_.Below(layers_.size()) : layers_.size();  // layer behind a break
  }

  std::string Write() {
    text_ = "graph random " + rows_ + " tokens\n";
    Params();
    Forward();
    Backward();
    return text_;
  }

 private:
  std::string Hidden() const { return ": bfloat16[" + rows_ + "," + width_ + "]"; }

  void Line(const std::string& line) { text_ += line + "\n"; }

  void Params() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      const bool tied = i > 0 && dice_.OneIn(8);
      layer.weight = tied ? layers_[dice_.Below(i)].weight : i;
      layer.biased = dice_.OneIn(2);
      layer.viewed = dice_.OneIn(3);
      layer.recomputed = dice_.OneIn(4);
      frozen_.push_back(dice_.OneIn(6));
      const std::string frozen = frozen_.back() ? " frozen" : "";
      const std::string dtype = dice_.OneIn(3) ? "float32" : "bfloat16";
      layer.dtype = tied ? layers_[layer.weight].dtype : dtype;
      if (!tied) {
        std::string shape = "[";
        shape.append(width_).append(",").append(width_).append("]");
        Line(Name("param w", i).append(" ").append(dtype).append(shape).append(frozen));
      }
      if (layer.biased) {
        Line("param " + Name("b", i) + " " + layer.dtype + "[" + width_ + "]" + frozen);
      }
    }
    Line("input x bfloat16[" + rows_ + "," + width_ + "]");
  }

  void Forward() {
    Line("forward");
    std::string hidden = "x";
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i == cut_ && i > 0) {
        Line("output " + hidden + " as cut");
        Line("forward");
        Line("receive " + hidden);
      }
      hidden = ForwardLayer(i, hidden);
    }
    Line("l: float32[] = aten::sum(" + hidden + ")");
    Line("loss l");
    if (dice_.OneIn(2)) {
      Line("output " + hidden + " as logits held");
    }
  }

  std::string ForwardLayer(std::size_t i, const std::string& in) {
    Layer& layer = layers_[i];
    const std::string module = " @layers." + std::to_string(i);
    layer.in = in;
    layer.out = Name("h", i);
    Line(layer.out + Hidden() + " = aten::mm(" + in + ", " + Name("w", layer.weight) + ")" +
         module);
    layer.product = layer.out;
    if (layer.biased) {
      layer.out = Name("a", i);
      Line(layer.out + Hidden() + " = aten::add(" + layer.product + ", " + Name("b", i) + ")" +
           module);
    }
    if (layer.viewed) {
      const std::string base = layer.out;
      layer.out = Name("v", i);
      Line(layer.out + Hidden() + " views " + base + " = aten::view(" + base + ")" + module);
    }
    if (in != "x" && !layer.recomputed) {
      Line("save " + in);
    }
    return layer.out;
  }

  /// Layers [first, last) backwards in a graph of their own.
  void BackwardGraph(std::size_t forward,
                     std::size_t first,
                     std::size_t last,
                     std::string gradient) {
    Line("backward of " + std::to_string(forward));
    bias_gradient_.clear();
    if (gradient.empty()) {
      Line("tangent t: float32[] of l");
      gradient = "g";
      Line("g" + Hidden() + " = aten::fill(t)");
    } else {
      Line("receive " + gradient);
    }
    for (std::size_t i = last; i-- > first;) {
      gradient = BackwardLayer(i, gradient, i == first);
    }
    if (first > 0) {
      Line("pass " + gradient + " of " + layers_[first].in);
    }
    passed_ = gradient;
    for (const std::string& line : gradient_lines_) {
      Line(line);
    }
    gradient_lines_.clear();
  }

  std::string BackwardLayer(std::size_t i, const std::string& gradient, bool first_of_graph) {
    const Layer& layer = layers_[i];
    const std::string module = " @layers." + std::to_string(i);
    if (layer.biased && !frozen_[i]) {
      BiasGradient(i, gradient, module);
    }
    std::string in = layer.in;
    if (in != "x" && layer.recomputed) {
      in = first_of_graph ? gradient : Recompute(i, module);
    }
    if (!frozen_[layer.weight]) {
      WeightGradient(i, in, gradient, module);
    }
    Line(Name("g", i) + Hidden() + " = aten::mm(" + gradient + ", " + Name("w", layer.weight) +
         ")" + module);
    return Name("g", i);
  }

  /// A gradient of its own, or now and then the one before, in the same storage.
  void BiasGradient(std::size_t i, const std::string& gradient, const std::string& module) {
    const std::string own = Name("gb", i);
    const std::string shape = ": " + layers_[i].dtype + "[" + width_ + "]";
    const bool shares =
        !bias_gradient_.empty() && bias_dtype_ == layers_[i].dtype && dice_.OneIn(3);
    Line(own + shape +
         (shares ? " views " + bias_gradient_ + " = aten::view(" + bias_gradient_ + ")"
                 : " = aten::sum(" + gradient + ")") +
         module);
    gradient_lines_.push_back("gradient " + Name("b", i) + " = " + own);
    bias_gradient_ = own;
    bias_dtype_ = layers_[i].dtype;
  }

  /// The layer's input again, from the parameters alone.
  std::string Recompute(std::size_t i, const std::string& module) {
    Line(Name("r", i) + Hidden() + " = aten::mm(x, " + Name("w", layers_[i - 1].weight) +
         ") recompute" + module);
    return Name("r", i);
  }

  /// A tied weight's gradient is the sum over its layers; it is whole in the layer that owns it.
  /// With a break between, the other graph's part is dropped: one gradient a parameter.
  void WeightGradient(std::size_t i,
                      const std::string& in,
                      const std::string& gradient,
                      const std::string& module) {
    const std::size_t weight = layers_[i].weight;
    const std::string shape = ": " + layers_[i].dtype + "[" + width_ + "," + width_ + "]";
    Line(Name("gw", i) + shape + " = aten::mm(" + in + ", " + gradient + ")" + module);
    if (weight == i) {
      const bool shares = dice_.OneIn(5);  // behind a view of its storage
      const std::string name = Name(shares ? "gv" : "gw", i);
      if (shares) {
        Line(name + shape + " views " + Name("gw", i) + " = aten::view(" + Name("gw", i) + ")");
      }
      gradient_lines_.push_back("gradient " + Name("w", i) + " = " + name);
    }
  }

  void Backward() {
    const bool broken = cut_ > 0 && cut_ < layers_.size();
    if (broken) {
      BackwardGraph(1, cut_, layers_.size(), "");
      BackwardGraph(0, 0, cut_, passed_);
    } else {
      BackwardGraph(0, 0, layers_.size(), "");
    }
  }

  Dice dice_;
  std::string width_;
  std::string rows_;
  std::vector<Layer> layers_;
  std::size_t cut_ = 0;
  std::vector<bool> frozen_;
  std::string bias_gradient_;  // last one of the graph
  std::string bias_dtype_;
  std::string passed_;  // gradient that leaves the last backward graph written
  std::vector<std::string> gradient_lines_;
  std::string text_;
};

PlanSpec RandomSpec(Dice& dice, const Graph& graph) {
  PlanSpec spec;
  ScheduleOptions& options = spec.options;
  options.stage = 1 + static_cast<int>(dice.Below(3));
  options.gradient_accumulation_steps = 1 + static_cast<int>(dice.Below(3));
  constexpr std::int64_t kBuckets[] = {1, 5'000, 100'000, 10'000'000};
  options.reduce_bucket = kBuckets[dice.Below(4)];
  options.double_buffer = dice.OneIn(2);
  options.reduce_collective = static_cast<ReduceCollective>(dice.Below(2));
  if (!CutByParameter(options)) {
    options.flush_collectives = static_cast<FlushCollectives>(dice.Below(2));
  }
  options.communicators = 1 + static_cast<int>(dice.Below(2));
  if (options.stage == 3 && dice.OneIn(4)) {
    options.gather_engine = Engine::kCopyEngine;
  }
  if (dice.OneIn(8)) {
    options.synchronize = {dice.OneIn(2), dice.OneIn(2), dice.OneIn(2), dice.OneIn(2)};
  }
  options.release = static_cast<ReleaseMode>(dice.Below(2));
  if (dice.OneIn(2)) {
    options.gradient_clipping = 1.0;
  }
  options.optimizer = static_cast<OptimizerKernels>(dice.Below(3));
  options.buffer_lifetime = static_cast<BufferLifetime>(dice.Below(3));
  options.gradient_reduction = static_cast<GradientReduction>(dice.Below(2));
  options.allocator = static_cast<AllocatorMode>(dice.Below(2));
  if (dice.OneIn(3)) {
    options.gradient_buckets = GradientBuckets::kEager;
    options.contiguous_gradients = dice.OneIn(2);
    options.flatten = static_cast<Flatten>(dice.Below(2));
    options.overlap_comm = options.stage != 3 && options.contiguous_gradients && dice.OneIn(2);
    options.buffer_lifetime = BufferLifetime::kStep;
    options.flush_collectives = FlushCollectives::kPerParameter;
    options.reduce_collective = ReduceCollective::kAllReduce;
    spec.policy = dice.OneIn(2) ? "plain-1" : "deepspeed-eager";
    return spec;
  }
  if (dice.OneIn(3)) {
    spec.policy = dice.OneIn(2) ? "deepcompile-0.19.6" : "deepcompile-0.19.8";
    options.gradient_reduction = GradientReduction::kEachBackward;
    if (options.stage != 2 && dice.OneIn(3)) {
      spec.policy = "deepcompile-0.17.1";
      options.gradient_reduction = GradientReduction::kEachMicroStep;
    }
    return spec;
  }
  if (options.stage == 3) {
    spec.gather_ahead = static_cast<std::int64_t>(dice.Below(4));
    spec.keep_gathered.all = dice.OneIn(8);
    if (dice.OneIn(4)) {
      spec.keep_gathered.patterns.push_back(graph.params[dice.Below(graph.params.size())].name);
    }
  }
  return spec;
}

/// Another order of the same ops in which every value is made before it is used.
std::vector<OpId> Shuffle(const Graph& graph, std::vector<OpId> waiting, Dice& dice) {
  std::vector<OpId> order;
  while (!waiting.empty()) {
    std::vector<bool> unmade(graph.values.size());
    for (const OpId id : waiting) {
      for (const ValueId output : graph.op(id).outputs) {
        unmade[output.index()] = true;
      }
    }
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const auto& inputs = graph.op(waiting[i]).inputs;
      if (std::none_of(inputs.begin(), inputs.end(),
                       [&](ValueId input) { return unmade[input.index()]; })) {
        ready.push_back(i);
      }
    }
    const std::size_t chosen = ready[dice.Below(ready.size())];
    order.push_back(waiting[chosen]);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return order;
}

/// Gathers anywhere up to the first use, those of one position in groups.
std::vector<GatherGroup> ScatterGathers(const Graph& graph,
                                        const std::vector<OpId>& order,
                                        Dice& dice) {
  const auto uses = FindUses(graph, order);
  std::vector<std::vector<ParamId>> at(order.size() + 1);
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const UseSpan& span = uses[graph.storage_of(graph.params[i].value).index()];
    if (span.used) {
      at[dice.Below(span.first + 1)].emplace_back(i);
    }
  }
  std::vector<GatherGroup> gathers;
  for (std::size_t position = 0; position < at.size(); ++position) {
    if (!at[position].empty()) {
      gathers.push_back({position, at[position]});
    }
  }
  return gathers;
}

void Disturb(const Graph& graph, Plan& plan, Dice& dice) {
  for (GraphPlan& decisions : plan.graphs) {
    decisions.order = Shuffle(graph, decisions.order, dice);
    decisions.events.clear();
    if (plan.options.stage == 3) {
      decisions.gathers = ScatterGathers(graph, decisions.order, dice);
    }
  }
}

FootprintStep Allocate(std::uint32_t block, Bytes bytes, std::int32_t output) {
  FootprintStep step;
  step.block = block;
  step.bytes = bytes;
  step.output = output;
  return step;
}

FootprintStep Free(std::uint32_t block) {
  FootprintStep step;
  step.kind = FootprintStep::Kind::kFree;
  step.block = block;
  return step;
}

/// Half of the ops, each with a temporary that it frees, its output, and one that it leaves.
Profile RandomProfile(const Graph& graph, Dice& dice) {
  Profile profile;
  profile.graph_hash = graph.hash;
  profile.gpu = "Hand GPU";
  const StepFacts facts = AnalyseStep(graph);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (facts.is_view[i] || dice.OneIn(2)) {
      continue;
    }
    OpProfile entry;
    entry.op = OpId(i);
    entry.device_time = Duration::FromNs(static_cast<std::int64_t>(1000 + dice.Below(100'000)));
    entry.host_time = Duration::FromNs(static_cast<std::int64_t>(dice.Below(10'000)));
    const Bytes own = graph.storage(facts.allocates[i].front()).bytes;
    entry.footprint = {Allocate(0, Bytes(static_cast<std::int64_t>(1 + dice.Below(1 << 20))), -1),
                       Allocate(1, own, 0), Free(0), Allocate(2, Bytes(512), -1)};
    profile.ops.push_back(entry);
  }
  return profile;
}

}  // namespace

std::string RandomGraphText(std::uint64_t seed) {
  return GraphWriter(seed).Write();
}

RandomStep MakeRandomStep(std::uint64_t seed) {
  Dice dice(seed + 1'000'000);
  RandomStep step{ParseGraphText(RandomGraphText(seed), "random"), {}, {}};
  step.profile = RandomProfile(step.graph, dice);
  const int ranks = 1 + static_cast<int>(dice.Below(8));
  step.plan = Resolve(RandomSpec(dice, step.graph), step.graph, ranks);
  if (dice.OneIn(2)) {
    Disturb(step.graph, step.plan, dice);
  }
  return step;
}

}  // namespace dcsim
