#include "sim/search/space.h"

#include <algorithm>
#include <functional>

#include "model/base/error.h"
#include "model/ir/plan_options.h"
#include "model/passes/gather_passes.h"
#include "model/passes/resolve.h"

namespace dcsim {
namespace {

constexpr std::string_view kFormat = "dc-space/1";
constexpr std::size_t kMostCombinations = 4096;

/// A key of a plan's options, and the values that it may take.
struct Dimension {
  std::string key;
  std::vector<Json> values;
};

/// An option alone, so that a fault stands where the value does, under the key once more.
void CheckValue(const std::string& key, const Json& value, const Path& path, Faults& faults) {
  Json alone = {{"stage", 3}};
  alone[key] = value;
  ObjectReader object(alone, path, faults);
  ScheduleOptions ignored;
  ReadScheduleOptions(object, ignored);
}

/// Takes the second key of CheckValue away: "/options/stage/2/stage" is "/options/stage/2".
Locator WithoutSecondKey(const Locator& locate) {
  return [&locate](const std::string& pointer) {
    const std::size_t last = std::min(pointer.rfind('/'), pointer.size());
    const bool second = pointer.starts_with("/options" + pointer.substr(last) + "/");
    return locate(second ? pointer.substr(0, last) : pointer);
  };
}

void CheckKey(const std::string& key, const Path& path, Faults& faults) {
  if (key == "backend") {
    faults.Add(path, "a search has one backend; name it with --backend");
    return;
  }
  const auto& known = PlanOptionKeys();
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    faults.Add(path, "unknown key '" + key + "'" + DidYouMean(key, known));
  }
}

std::vector<Dimension> ReadDimensions(const Json& options, const Path& path, Faults& faults) {
  std::vector<Dimension> dimensions;
  if (!options.is_object()) {
    faults.Add(path, "expected options of a plan, each with a value or a list of values");
    return dimensions;
  }
  for (const auto& [key, value] : options.items()) {
    Dimension dimension{key, {}};
    const Path own(path, key);
    CheckKey(key, own, faults);
    if (value.is_array() && value.empty()) {
      faults.Add(own, "expected at least one value");
    }
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      CheckValue(key, value[i], Path(own, i), faults);
      dimension.values.push_back(value[i]);
    }
    if (!value.is_array()) {
      CheckValue(key, value, own, faults);
      dimension.values.push_back(value);
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

/// What the stage does not look at takes one value, so that no schedule is searched twice.
void Normalise(ScheduleOptions& options) {
  if (options.stage == 3) {
    options.reduce_collective = ReduceCollective::kAllReduce;
  }
  if (options.stage != 3) {
    options.release = ReleaseMode::kEventOrdered;
    options.gather_engine = Engine::kNccl;
    options.fuse_casts = false;
  }
  options.offload_period = OffloadPeriod::kStep;  // no state moves
  if (options.gather_engine == Engine::kCopyEngine) {
    options.communicators = 1;  // copies queue in none
    options.fuse_casts = false;
  }
}

void AddOnce(const ScheduleOptions& options, std::vector<ScheduleOptions>& all) {
  if (std::find(all.begin(), all.end(), options) == all.end()) {
    all.push_back(options);
  }
}

ScheduleOptions OptionsOf(const Json& combination) {
  Faults faults(PointerLocator("combination"));
  const Path root;
  ObjectReader object(combination, root, faults);
  ScheduleOptions options;
  ReadScheduleOptions(object, options);
  faults.ThrowIfAny();
  return options;
}

/// All combinations that no rule of plans forbids; `where` they stand. Throws Error with a rule
/// when none is left.
std::vector<ScheduleOptions> Combine(const std::vector<Dimension>& dimensions,
                                     const std::string& where) {
  std::vector<Json> combinations = {Json::object()};
  for (const Dimension& dimension : dimensions) {
    std::vector<Json> longer;
    for (const Json& begun : combinations) {
      for (const Json& value : dimension.values) {
        longer.push_back(begun);
        longer.back()[dimension.key] = value;
      }
    }
    combinations = std::move(longer);
  }
  std::vector<ScheduleOptions> all;
  std::vector<std::string> faults;
  for (const Json& combination : combinations) {
    ScheduleOptions options = OptionsOf(combination);
    Normalise(options);
    if (options.sharding == Sharding::kFsdp2) {
      throw Error(where + ": sharding: fsdp2 is what policy fsdp decides; a search looks for " +
                  "schedules of ZeRO");
    }
    faults = FindOptionFaults(options);
    if (faults.empty()) {
      AddOnce(options, all);
    }
  }
  if (all.empty()) {
    throw Error(where + ": no combination of these values is possible: " + faults.front());
  }
  return all;
}

void ReadCount(ObjectReader& object, std::string_view key, std::int64_t least, std::int64_t& to) {
  constexpr std::int64_t kMost = 1'000'000;
  if (object.Optional(key, ReadInteger, to) && (to < least || to > kMost)) {
    object.faults().Add(object.At(key), "expected a count from " + std::to_string(least) + " to " +
                                            std::to_string(kMost) + ", found " +
                                            std::to_string(to));
  }
}

void ReadPatterns(ObjectReader& object,
                  std::string_view key,
                  const Locator& locate,
                  std::vector<ParamPattern>& patterns) {
  const Json* list = object.Find(key);
  if (list == nullptr) {
    return;
  }
  const Path path = object.At(key);
  if (!list->is_array()) {
    object.faults().Add(path, "expected a list of parameter names with '*'");
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Path own(path, i);
    if (auto text = ReadString((*list)[i], own, object.faults())) {
      patterns.push_back({*std::move(text), locate(own.Pointer())});
    }
  }
}

void ReadGathers(ObjectReader& object, const Locator& locate, GatherSpace& space) {
  ReadCount(object, "most_ahead", 0, space.most_ahead);
  ReadCount(object, "most_in_launch", 1, space.most_in_launch);
  object.Optional("largest_launch", ReadBytes, space.largest_launch);
  object.Optional("most_in_flight", ReadBytes, space.most_in_flight);
  object.Optional("choose_persistent", ReadBool, space.choose_persistent);
  ReadPatterns(object, "always_gathered", locate, space.always_gathered);
  ReadPatterns(object, "never_kept", locate, space.never_kept);
  object.RejectUnknown();
}

void CheckCombinations(const std::vector<Dimension>& dimensions, const Path& path, Faults& faults) {
  std::size_t count = 1;
  for (const Dimension& dimension : dimensions) {
    count *= std::max<std::size_t>(1, dimension.values.size());
    if (count > kMostCombinations) {
      faults.Add(path, "more than " + std::to_string(kMostCombinations) + " combinations");
      return;
    }
  }
}

/// The parameters that patterns match.
std::vector<bool> Matching(const std::vector<ParamPattern>& patterns, const Graph& graph) {
  std::vector<bool> all(graph.params.size());
  for (const ParamPattern& pattern : patterns) {
    const auto matching = MatchingParams(graph, pattern.text, pattern.where);
    std::transform(all.begin(), all.end(), matching.begin(), all.begin(), std::logical_or<>());
  }
  return all;
}

std::vector<std::uint32_t> SiteOfParam(const std::vector<GatherSite>& sites, std::size_t params) {
  std::vector<std::uint32_t> site_of(params);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    site_of[sites[i].param.index()] = static_cast<std::uint32_t>(i);
  }
  return site_of;
}

/// How many sites lie between the gather's position and its first use. An op may be the first to
/// use several parameters: the nearest of them counts.
std::int64_t SitesAhead(const std::vector<GatherSite>& sites,
                        std::uint32_t own,
                        std::uint32_t position) {
  const auto use = sites.begin() + own;
  const auto next =
      std::lower_bound(sites.begin(), use, position,
                       [](const GatherSite& site, std::uint32_t at) { return site.first < at; });
  const auto behind =
      std::upper_bound(next, use, next->first,
                       [](std::uint32_t at, const GatherSite& site) { return at < site.first; });
  return next == use || next->first == use->first ? 0 : use - (behind - 1);
}

}  // namespace

SearchSpace ReadSearchSpace(const Json& document, const Locator& locate) {
  RequireFormat(document, kFormat, locate);
  Faults faults(WithoutSecondKey(locate));
  const Path root;
  ObjectReader object(document, root, faults);
  SearchSpace space;
  object.Require("format");
  if (object.Optional("memory_limit", ReadBytes, space.memory_limit) &&
      *space.memory_limit <= Bytes(0)) {
    faults.Add(object.At("memory_limit"), "expected an amount above 0");
  }
  std::vector<Dimension> dimensions;
  if (const Json* options = object.Require("options")) {
    const Path path = object.At("options");
    dimensions = ReadDimensions(*options, path, faults);
    CheckCombinations(dimensions, path, faults);
    if (options->is_object() && !options->contains("stage")) {
      faults.Add(Path(path, "stage"), "is missing");
    }
    const auto names = [&](std::string_view key) {
      const bool named = options->is_object() && options->contains(key);
      if (named && (*options)[key].is_array()) {
        faults.Add(Path(path, key), "expected one value: what is trained must not change");
      }
      return named;
    };
    space.names_accumulation = names("gradient_accumulation_steps");
    space.names_clipping = names("gradient_clipping");
    for (const std::string_view key : TrainingKeys()) {
      space.names_training = names(key) || space.names_training;
    }
  }
  if (const Json* gathers = object.Find("gathers")) {
    const Path path = object.At("gathers");
    ObjectReader reader(*gathers, path, faults);
    ReadGathers(reader, locate, space.gathers);
  }
  object.RejectUnknown();
  faults.ThrowIfAny();
  space.options = Combine(dimensions, locate("/options"));
  return space;
}

void TakeTraining(const ScheduleOptions& baseline, SearchSpace& space) {
  for (ScheduleOptions& options : space.options) {
    if (!space.names_accumulation) {
      options.gradient_accumulation_steps = baseline.gradient_accumulation_steps;
    }
    if (!space.names_clipping) {
      options.gradient_clipping = baseline.gradient_clipping;
    }
    if (!space.names_training) {
      options.training = baseline.training;
    }
    if (options.gradient_accumulation_steps != baseline.gradient_accumulation_steps ||
        options.gradient_clipping != baseline.gradient_clipping ||
        options.training != baseline.training) {
      throw Error(
          "the baseline and the space train differently: gradient_accumulation_steps, "
          "gradient_clipping and " +
          JoinAlternatives(TrainingKeys()) +
          " must be the same in both, or be left out of the space");
    }
  }
}

Json DefaultSearchSpace() {
  return {
      {"format", kFormat},
      {"options",
       {{"stage", {1, 2, 3}},
        {"reduce_bucket",
         {"50e6 elements", "100e6 elements", "200e6 elements", "500e6 elements", "1e9 elements"}},
        {"double_buffer", {true, false}},
        {"reduce_collective", {"all_reduce", "reduce_scatter"}},
        {"flush_collectives", {"per_parameter", "one_per_bucket"}},
        {"communicators", {1, 2}},
        {"gather_engine", {"nccl", "copy_engine"}},
        {"fuse_casts", {false, true}},
        {"align_tensors", {true}}}},
      {"gathers",
       {{"most_ahead", 64},
        {"most_in_launch", 16},
        {"largest_launch", "1 GB"},
        {"choose_persistent", true}}}};
}

GatherRules::GatherRules(const GatherSpace& space, const Graph& graph)
    : space_(space),
      may_keep_(graph.params.size(), space.choose_persistent),
      must_keep_(Matching(space.always_gathered, graph)) {
  const std::vector<bool> never = Matching(space.never_kept, graph);
  for (std::size_t i = 0; i < may_keep_.size(); ++i) {
    may_keep_[i] = (may_keep_[i] && !never[i]) || must_keep_[i];
  }
}

bool GatherRules::AdmitsLaunches(const std::vector<GatherSite>& sites,
                                 const GraphGathers& gathers) const {
  const auto site_of = SiteOfParam(sites, may_keep_.size());
  std::uint32_t begin = 0;
  for (const GatherLaunch& launch : gathers.launches) {
    Bytes bytes;
    for (std::uint32_t i = begin; i < launch.end; ++i) {
      const std::uint32_t own = site_of[gathers.params[i].index()];
      if (SitesAhead(sites, own, launch.position) > space_.most_ahead) {
        return false;
      }
      bytes += sites[own].gathered;
    }
    const bool grouped = launch.end - begin > 1;
    if (grouped && (launch.end - begin > space_.most_in_launch || bytes > space_.largest_launch)) {
      return false;
    }
    begin = launch.end;
  }
  return true;
}

/// Bytes issued before their first use, after each launch.
bool GatherRules::AdmitsFlight(const std::vector<GatherSite>& sites,
                               const GraphGathers& gathers,
                               const std::vector<std::uint8_t>& persistent) const {
  const auto site_of = SiteOfParam(sites, may_keep_.size());
  Bytes in_flight;
  std::size_t used = 0;  // sites whose first use lies behind
  std::uint32_t begin = 0;
  std::vector<Bytes> flies(sites.size());  // by site: what it adds from its launch to its first use
  for (const GatherLaunch& launch : gathers.launches) {
    for (; used < sites.size() && sites[used].first <= launch.position; ++used) {
      in_flight -= flies[used];
    }
    for (; begin < launch.end; ++begin) {
      const std::uint32_t site = site_of[gathers.params[begin].index()];
      const bool ahead = sites[site].first > launch.position;
      const bool kept = persistent[sites[site].param.index()] != 0;
      flies[site] = ahead && !kept ? sites[site].gathered : Bytes(0);
      in_flight += flies[site];
    }
    if (in_flight > *space_.most_in_flight) {
      return false;
    }
  }
  return true;
}

bool GatherRules::Admit(const std::vector<GatherSite>& sites,
                        const GraphGathers& gathers,
                        const std::vector<std::uint8_t>& persistent) const {
  return AdmitsLaunches(sites, gathers) &&
         (!space_.most_in_flight || AdmitsFlight(sites, gathers, persistent));
}

}  // namespace dcsim
