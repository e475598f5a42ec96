#include "tools/common/kineto_events.h"

#include <cmath>
#include <regex>

#include "model/base/control_text.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/document.h"

namespace dcsim {
namespace {

constexpr std::string_view kStepMarker = "ProfilerStep#";
// Whatever is beyond is no time of a trace: microseconds since 1970 are 1.8e15.
constexpr double kMostUs = 9e15;

/// The fields of one event that matter.
struct Fields {
  std::string phase;
  std::string category;
  std::string name;
  std::optional<double> start_us;
  std::optional<double> duration_us;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::int64_t correlation = 0;
};

/// Follows the parser through the document and keeps what is asked for.
class EventReader : public nlohmann::json_sax<Json> {
 public:
  explicit EventReader(const std::string& file) : file_(file) {}

  KinetoEvents Take() {
    if (!has_events_) {
      throw Error(file_ + ": expected a trace of torch.profiler, which has traceEvents");
    }
    return std::move(read_);
  }

  bool null() override { return Ignore(); }
  bool boolean(bool) override { return Ignore(); }
  bool number_integer(std::int64_t value) override { return Number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) override { return Number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) override { return Number(value); }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none

  bool string(std::string& value) override {
    if (skipped_ > 0) {
      return true;
    }
    if (place_ == Place::kEvent) {
      if (key_ == "ph") {
        event_.phase = value;
      } else if (key_ == "cat") {
        event_.category = value;
      } else if (key_ == "name") {
        event_.name = value;
      }
    }
    return Ignore();
  }

  bool key(std::string& name) override {
    if (skipped_ == 0) {
      key_ = name;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (skipped_ == 0 && place_ == Place::kDocument) {
      place_ = Place::kTop;
    } else if (skipped_ == 0 && place_ == Place::kTop && key_ == "distributedInfo") {
      place_ = Place::kJob;
    } else if (skipped_ == 0 && place_ == Place::kEvents) {
      place_ = Place::kEvent;
      event_ = {};
    } else if (skipped_ == 0 && place_ == Place::kEvent && key_ == "args") {
      place_ = Place::kArguments;
    } else {
      ++skipped_;
    }
    return true;
  }

  bool end_object() override {
    if (skipped_ > 0) {
      --skipped_;
    } else if (place_ == Place::kArguments) {
      place_ = Place::kEvent;
    } else if (place_ == Place::kEvent) {
      place_ = Place::kEvents;
      Keep();
      ++index_;
    } else {
      place_ = place_ == Place::kJob ? Place::kTop : Place::kDocument;
    }
    return true;
  }

  // The list of events alone is a trace, too.
  bool start_array(std::size_t) override {
    const bool events =
        place_ == Place::kDocument || (place_ == Place::kTop && key_ == "traceEvents");
    if (skipped_ == 0 && events) {
      around_ = place_;
      place_ = Place::kEvents;
      has_events_ = true;
    } else {
      ++skipped_;
    }
    return true;
  }

  bool end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      place_ = around_;
    }
    return true;
  }

  bool parse_error(std::size_t,
                   const std::string&,
                   const nlohmann::detail::exception& error) override {
    static const std::regex message(R"(at line (\d+), column (\d+): ([^]*))");
    const std::string what = error.what();
    std::smatch parts;
    if (!std::regex_search(what, parts, message)) {
      throw Error(file_ + ": not valid JSON: " + what);
    }
    constexpr std::size_t kMostShown = 160;  // a text that does not end is quoted whole
    throw Error(file_ + ":" + parts[1].str() + ":" + parts[2].str() +
                ": not valid JSON: " + parts[3].str().substr(0, kMostShown));
  }

 private:
  enum class Place { kDocument, kTop, kJob, kEvents, kEvent, kArguments };

  bool Ignore() const {
    if (place_ == Place::kDocument) {
      throw Error(file_ + ": expected a trace of torch.profiler, found a single value");
    }
    return true;
  }

  bool Number(double value) {
    if (skipped_ > 0) {
      return true;
    }
    const auto whole = [&] {
      if (!(std::abs(value) < kMostUs)) {
        Fail(key_, "expected a number below 9e15");
      }
      return static_cast<std::int64_t>(value);
    };
    if (place_ == Place::kEvent && key_ == "ts") {
      event_.start_us = value;
    } else if (place_ == Place::kEvent && key_ == "dur") {
      event_.duration_us = value;
    } else if (place_ == Place::kArguments && key_ == "stream") {
      event_.stream = whole();
    } else if (place_ == Place::kArguments && key_ == "device") {
      event_.device = whole();
    } else if (place_ == Place::kArguments && key_ == "correlation") {
      event_.correlation = whole();
    } else if (place_ == Place::kJob && key_ == "world_size") {
      read_.ranks = whole();
    }
    return Ignore();
  }

  [[noreturn]] void Fail(std::string_view field, std::string_view what) const {
    throw Error(file_ + ": traceEvents/" + std::to_string(index_) + ": " + std::string(field) +
                ": " + std::string(what));
  }

  SimTime Time(std::optional<double> us, std::string_view field) const {
    if (!us || !(std::abs(*us) < kMostUs)) {
      Fail(field, "expected microseconds below 9e15");
    }
    return SimTime::FromNs(std::llround(*us * 1000));
  }

  SimTime End(SimTime start) const {
    const Duration duration = Time(event_.duration_us, "dur") - SimTime();
    if (duration < Duration()) {
      Fail("dur", "expected 0 or more");
    }
    return start + duration;
  }

  void Keep() {
    if (event_.phase != "X") {
      return;
    }
    const std::string_view category = event_.category;
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      KeepGpuEvent();
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      if (event_.correlation != 0) {
        read_.launches.emplace(event_.correlation, Time(event_.start_us, "ts"));
      }
    } else if (category == "user_annotation" || category == "gpu_user_annotation") {
      KeepMarker();
    }
  }

  void KeepGpuEvent() {
    TracedEvent event;
    event.kind = event_.category == "kernel"       ? TracedKind::kKernel
                 : event_.category == "gpu_memcpy" ? TracedKind::kCopy
                                                   : TracedKind::kFill;
    event.name = NameOf(event_.name);
    event.device = event_.device;
    event.stream = event_.stream;
    event.launch = event_.correlation;
    event.start = Time(event_.start_us, "ts");
    event.end = End(event.start);
    read_.events.push_back(event);
  }

  void KeepMarker() {
    const std::string_view name = event_.name;
    if (!name.starts_with(kStepMarker)) {
      return;
    }
    const auto number = FindInteger(name.substr(kStepMarker.size()));
    if (!number) {
      Fail("name", "expected ProfilerStep# and a number");
    }
    const SimTime start = Time(event_.start_us, "ts");
    auto& markers = event_.category == "user_annotation" ? read_.host_markers : read_.gpu_markers;
    markers.push_back({*number, start, End(start)});
  }

  /// Names come back in tables, which a terminal shows.
  std::uint32_t NameOf(const std::string& name) {
    const auto [place, is_new] =
        name_ids_.emplace(name, static_cast<std::uint32_t>(read_.names.size()));
    if (is_new) {
      if (FindControlCharacter(name)) {
        Fail("name", "expected a text without control characters");
      }
      read_.names.push_back(name);
    }
    return place->second;
  }

  const std::string& file_;
  Place place_ = Place::kDocument;
  Place around_ = Place::kDocument;  // of the list of events
  std::size_t skipped_ = 0;          // open lists and objects in which nothing matters
  std::string key_;
  Fields event_;
  std::size_t index_ = 0;
  bool has_events_ = false;
  KinetoEvents read_;
  std::unordered_map<std::string, std::uint32_t> name_ids_;
};

}  // namespace

KinetoEvents ParseKinetoEvents(std::string_view text, const std::string& file) {
  EventReader reader(file);
  Json::sax_parse(text, &reader);
  return reader.Take();
}

}  // namespace dcsim
