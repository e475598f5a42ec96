#include "tools/common/fit_search.h"

#include <algorithm>
#include <set>

#include "model/base/text.h"

namespace dcsim {
namespace {

constexpr std::size_t kBeam = 3;
constexpr std::size_t kMostChanges = 4;

/// GPU time a token of a step, in memory without end where it does not fit; 0: unknown.
double GpuTime(const PredictedVariant& predicted) {
  const Result& result = predicted.unlimited ? *predicted.unlimited : predicted.result;
  return result.outcome == "completed" && result.tokens_per_second > 0
             ? result.gpus / result.tokens_per_second
             : 0;
}

/// What fits before what may run out of memory before what does not fit.
int RankOf(const FitAnswer& answer) {
  return answer.fits ? 0 : answer.predicted.result.outcome == "completed" ? 1 : 2;
}

/// Cheapest first; of what does not fit what reserves least.
bool IsBetter(const FitAnswer& a, const FitAnswer& b) {
  if (RankOf(a) != RankOf(b)) {
    return RankOf(a) < RankOf(b);
  }
  if (RankOf(a) == 2) {
    const auto reserved = [](const FitAnswer& each) {
      return ReservedMemory(each.predicted).value_or(kAmpleMemory);
    };
    return reserved(a) < reserved(b);
  }
  return a.cost < b.cost;
}

std::string LabelOf(const std::vector<FitChange>& changes) {
  std::vector<std::string> labels;
  std::transform(changes.begin(), changes.end(), std::back_inserter(labels),
                 [](const FitChange& each) { return each.label; });
  return Join(labels, ", ");
}

class Finder {
 public:
  Finder(const FitBase& base, RecordingShelf& shelf, const FitSearch& search)
      : base_(base),
        shelf_(shelf),
        search_(search) {}

  FitFindings Find() {
    PredictNow();
    changes_ = ChangesOf(base_);
    // What needs no recording first: one is made where nothing else fits.
    for (const bool recorded : {false, true}) {
      std::vector<std::vector<FitChange>> round;
      for (const FitChange& change : changes_) {
        if (NeedsRecording(change) == recorded) {
          round.push_back({change});
        }
      }
      Predict(round);
    }
    DropUseless();
    for (std::size_t size = 2; size <= kMostChanges && (size == 2 || !AnyFits()); ++size) {
      Predict(Extended(size - 1));
    }
    std::stable_sort(found_.answers.begin(), found_.answers.end(), IsBetter);
    return std::move(found_);
  }

 private:
  void PredictNow() {
    std::vector<StepVariant> variants = {{"", base_.options}};
    if (base_.step.profile) {
      variants.push_back(variants.front());
      variants.back().step.times = OpTimes::kRoofline;
    }
    auto predicted = PredictVariants(variants, {search_.threads});
    found_.now = std::move(predicted.front());
    if (predicted.size() > 1) {
      found_.unprofiled = std::move(predicted.back());
    }
    seen_.insert(KeyOf(found_.now.result));
  }

  /// Steps of the same key are the same.
  static std::string KeyOf(const Result& result) {
    return HexDigits(result.graph_hash) +
           HexDigits(HashBytes(result.plan.dump() + result.cluster.dump()));
  }

  bool AnyFits() const {
    return NowFits() || std::any_of(found_.answers.begin(), found_.answers.end(),
                                    [](const FitAnswer& each) { return each.fits; });
  }

  bool NowFits() const { return found_.now.result.verdict == "fits"; }

  /// Whether what changes need recorded takes less memory than the step now, not more.
  bool MakesRoom(const std::vector<FitChange>& changes) const {
    return std::all_of(changes.begin(), changes.end(), [&](const FitChange& each) {
      return each.recording.sizes.batch <= shelf_.own()->batch &&
             each.recording.checkpointing.value_or(true);
    });
  }

  /// The folder of what these changes need recorded, made now where that is worth it; "" where it
  /// is missing.
  std::string FolderFor(const std::vector<FitChange>& changes) {
    if (std::none_of(changes.begin(), changes.end(), NeedsRecording)) {
      return base_.step.workload.folder;
    }
    const AskedRecording asked = MergedRecording(changes);
    if (const auto folder = shelf_.Find(asked)) {
      return *folder;
    }
    const std::string command = shelf_.Command(asked);
    // A step that fits may get faster, any other needs room. Of several changes together only the
    // recorder's own is made, and only while nothing fits.
    const bool named = MakesRoom(changes) != NowFits() && (changes.size() == 1 || search_.make);
    const bool worth = NowFits() || !AnyFits();
    if (command.empty() || !named || (changes.size() > 1 && !worth) ||
        !made_.insert(command).second) {
      return "";
    }
    std::string fault;
    if (search_.make && worth) {
      fault = search_.make(asked);
      shelf_.Forget();
      if (const auto folder = shelf_.Find(asked)) {
        return *folder;
      }
    }
    const bool is_command = fault.empty();
    found_.untried.push_back({LabelOf(changes), is_command ? command : fault, is_command});
    return "";
  }

  std::string HowOf(const FitAnswer& answer) const {
    std::vector<std::string> parts;
    if (answer.options.workload != base_.step.workload.folder) {
      parts.push_back("workload " + answer.options.workload);
    }
    for (const FitChange& change : answer.changes) {
      if (!change.how.empty()) {
        parts.push_back(change.how);
      }
    }
    const Json& plan = answer.predicted.result.plan;
    const std::string key = "gradient_accumulation_steps";
    if (plan.value(key, 0) != base_.step.plan.options.gradient_accumulation_steps) {
      const std::string steps = plan.value(key, Json()).dump();
      parts.push_back(base_.is_deepspeed ? key + ": " + steps : "--set " + key + "=" + steps);
    }
    return Join(parts, base_.is_deepspeed ? "; " : " ");
  }

  void Predict(const std::vector<std::vector<FitChange>>& round) {
    std::vector<FitAnswer> answers;
    std::vector<StepVariant> variants;
    for (const auto& changes : round) {
      if (!changes.back().impossible.empty()) {
        found_.untried.push_back({LabelOf(changes), changes.back().impossible});
        continue;
      }
      if (!Changed(base_, changes, "")) {
        continue;  // no accumulation keeps the global batch
      }
      const std::string folder = FolderFor(changes);
      if (!folder.empty()) {
        FitAnswer answer{changes, {}, *Changed(base_, changes, folder), {}};
        variants.push_back({LabelOf(changes), answer.options});
        answers.push_back(std::move(answer));
      }
    }
    auto predicted = PredictVariants(variants, {search_.threads, OnRefusal::kKeep, search_.done});
    for (std::size_t i = 0; i < answers.size(); ++i) {
      answers[i].predicted = std::move(predicted[i]);
      Take(std::move(answers[i]));
    }
  }

  void Take(FitAnswer answer) {
    if (!answer.predicted.refused.empty()) {
      if (answer.changes.size() == 1) {
        found_.untried.push_back({LabelOf(answer.changes), answer.predicted.refused});
      }
      return;
    }
    const Result& result = answer.predicted.result;
    if (!seen_.insert(KeyOf(result)).second) {
      return;  // changes nothing
    }
    const bool estimated = found_.unprofiled && !answer.predicted.profiled;
    const double now = GpuTime(estimated ? *found_.unprofiled : found_.now);
    answer.cost = now > 0 ? GpuTime(answer.predicted) / now : 0;
    answer.fits = result.verdict == "fits";
    answer.how = HowOf(answer);
    found_.answers.push_back(std::move(answer));
  }

  /// Further rounds take the changes that made the step cheaper by themselves, or, while it does
  /// not fit, smaller.
  void DropUseless() {
    const Bytes now = ReservedMemory(found_.now).value_or(kAmpleMemory);
    useful_.clear();
    for (const FitAnswer& each : found_.answers) {
      const bool smaller =
          !NowFits() && ReservedMemory(each.predicted).value_or(kAmpleMemory) < now;
      if (smaller || (each.cost > 0 && each.cost < 1)) {
        useful_.push_back(each.changes.front());
      }
    }
    for (const UntriedChange& each : found_.untried) {
      for (const FitChange& change : changes_) {
        if (each.is_command && search_.make && change.label == each.label) {
          useful_.push_back(change);
        }
      }
    }
  }

  /// The best steps of `size` changes, each with one useful change more; every set once.
  std::vector<std::vector<FitChange>> Extended(std::size_t size) {
    std::vector<const FitAnswer*> best;
    for (const FitAnswer& each : found_.answers) {
      if (each.changes.size() == size) {
        best.push_back(&each);
      }
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const FitAnswer* a, const FitAnswer* b) { return IsBetter(*a, *b); });
    best.resize(std::min(best.size(), kBeam));
    std::vector<std::vector<FitChange>> extended;
    std::set<std::set<std::string>> sets;
    for (const FitAnswer* each : best) {
      for (const FitChange& change : useful_) {
        std::vector<FitChange> changes = each->changes;
        std::set<std::string> labels = {change.label};
        bool other_kinds = true;
        for (const FitChange& own : changes) {
          labels.insert(own.label);
          other_kinds = other_kinds && own.kind != change.kind;
        }
        if (other_kinds && sets.insert(labels).second) {
          changes.push_back(change);
          extended.push_back(std::move(changes));
        }
      }
    }
    return extended;
  }

  const FitBase& base_;
  RecordingShelf& shelf_;
  const FitSearch& search_;
  FitFindings found_;
  std::vector<FitChange> changes_;
  std::vector<FitChange> useful_;
  std::set<std::string> seen_;
  std::set<std::string> made_;  // commands that were tried or named
};

}  // namespace

FitFindings FindFits(const FitBase& base, RecordingShelf& shelf, const FitSearch& search) {
  return Finder(base, shelf, search).Find();
}

}  // namespace dcsim
