// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/recording/recording.h"

#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "nlohmann/json.hpp"

namespace muster::scaling::recording {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using scaling::policy::Binding;

// The last value of Binding: reading a name searches all values.
constexpr auto kLastBinding = static_cast<int>(Binding::kPolicy);

ordered_json TimeJson(absl::Time time) {
  if (time == absl::InfiniteFuture()) return nullptr;
  return absl::ToUnixNanos(time);
}

ordered_json DurationJson(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

absl::Time TimeOf(const json& value) {
  return value.is_null() ? absl::InfiniteFuture() : absl::FromUnixNanos(value.get<int64_t>());
}

absl::Duration DurationOf(const json& value) { return absl::Nanoseconds(value.get<int64_t>()); }

ordered_json TimesJson(const std::vector<absl::Time>& times) {
  ordered_json array = ordered_json::array();
  for (const absl::Time time : times) array.push_back(TimeJson(time));
  return array;
}

std::vector<absl::Time> TimesOf(const json& array) {
  std::vector<absl::Time> times;
  for (const json& time : array) times.push_back(TimeOf(time));
  return times;
}

ordered_json PolicyJson(const scaling::policy::DeadlineOptions& policy) {
  ordered_json aim = nullptr;
  if (policy.aim.has_value()) aim = DurationJson(*policy.aim);
  return {{"sla_ns", DurationJson(policy.sla)},
          {"aim_ns", aim},
          {"patience", policy.patience},
          {"hold", policy.hold},
          {"loss_after", policy.on_metric_loss.after},
          {"loss_keep_current", policy.on_metric_loss.keep_current},
          {"loss_floor", policy.on_metric_loss.floor},
          {"stale_after_ns", DurationJson(policy.stale_after)},
          {"rate_risk", policy.rate_risk},
          {"forecast", policy.forecast}};
}

scaling::policy::DeadlineOptions PolicyOf(const json& value) {
  scaling::policy::DeadlineOptions policy;
  policy.sla = DurationOf(value.at("sla_ns"));
  if (!value.at("aim_ns").is_null()) policy.aim = DurationOf(value.at("aim_ns"));
  policy.patience = value.at("patience").get<double>();
  policy.hold = value.at("hold").get<double>();
  policy.on_metric_loss.after = value.at("loss_after").get<int>();
  policy.on_metric_loss.keep_current = value.at("loss_keep_current").get<bool>();
  policy.on_metric_loss.floor = value.at("loss_floor").get<int>();
  policy.stale_after = DurationOf(value.at("stale_after_ns"));
  policy.rate_risk = value.at("rate_risk").get<double>();
  policy.forecast = value.at("forecast").get<bool>();
  return policy;
}

ordered_json FleetJson(const scaling::policy::Fleet& fleet) {
  return {{"ready", fleet.ready},
          {"draining", fleet.draining},
          {"parked", fleet.parked},
          {"starting", TimesJson(fleet.starting)},
          {"idle_since", TimesJson(fleet.idle_since)},
          {"tasks", fleet.tasks},
          {"max_tasks", fleet.max_tasks}};
}

scaling::policy::Fleet FleetOf(const json& value) {
  scaling::policy::Fleet fleet;
  fleet.ready = value.at("ready").get<int>();
  fleet.draining = value.at("draining").get<int>();
  fleet.parked = value.at("parked").get<int>();
  fleet.starting = TimesOf(value.at("starting"));
  fleet.idle_since = TimesOf(value.at("idle_since"));
  fleet.tasks = value.at("tasks").get<int>();
  fleet.max_tasks = value.at("max_tasks").get<int>();
  return fleet;
}

ordered_json EstimatesJson(const scaling::policy::Estimates& estimates) {
  return {{"items_per_second", estimates.items_per_second},
          {"service_time_ns", DurationJson(estimates.service_time)},
          {"cold_start_ns", DurationJson(estimates.cold_start)},
          {"release_ns", DurationJson(estimates.release)},
          {"cpu_share", estimates.cpu_share},
          {"throttled_share", estimates.throttled_share}};
}

// NaN is written as null.
double NumberOf(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

scaling::policy::Estimates EstimatesOf(const json& value) {
  scaling::policy::Estimates estimates;
  estimates.items_per_second = NumberOf(value.at("items_per_second"));
  estimates.service_time = DurationOf(value.at("service_time_ns"));
  estimates.cold_start = DurationOf(value.at("cold_start_ns"));
  estimates.release = DurationOf(value.at("release_ns"));
  estimates.cpu_share = NumberOf(value.at("cpu_share"));
  estimates.throttled_share = NumberOf(value.at("throttled_share"));
  return estimates;
}

ordered_json QueueJson(const scaling::policy::QueueReading& queue) {
  return {{"queue", queue.queue},
          {"at", TimeJson(queue.at)},
          {"ready", queue.ready},
          {"in_flight", queue.in_flight},
          {"oldest_age_ns", DurationJson(queue.oldest_age)},
          {"total_in", queue.total_in},
          {"total_out", queue.total_out}};
}

scaling::policy::QueueReading QueueOf(const json& value) {
  return {value.at("queue").get<std::string>(),  TimeOf(value.at("at")),
          value.at("ready").get<int64_t>(),      value.at("in_flight").get<int64_t>(),
          DurationOf(value.at("oldest_age_ns")), value.at("total_in").get<int64_t>(),
          value.at("total_out").get<int64_t>()};
}

ordered_json ObservationJson(const scaling::policy::Observation& seen) {
  ordered_json queues = ordered_json::array();
  for (const scaling::policy::QueueReading& queue : seen.queues) queues.push_back(QueueJson(queue));
  return {{"now", TimeJson(seen.now)},
          {"bounds",
           {{"min", seen.bounds.min}, {"max", seen.bounds.max}, {"standby", seen.bounds.standby}}},
          {"fleet", FleetJson(seen.fleet)},
          {"estimates", EstimatesJson(seen.estimates)},
          {"queues", queues}};
}

scaling::policy::Observation ObservationOf(const json& value) {
  scaling::policy::Observation seen;
  seen.now = TimeOf(value.at("now"));
  const json& bounds = value.at("bounds");
  seen.bounds = {bounds.at("min").get<int>(), bounds.at("max").get<int>(),
                 bounds.at("standby").get<int>()};
  seen.fleet = FleetOf(value.at("fleet"));
  seen.estimates = EstimatesOf(value.at("estimates"));
  for (const json& queue : value.at("queues")) seen.queues.push_back(QueueOf(queue));
  return seen;
}

ordered_json DecisionJson(const scaling::policy::Decision& decision) {
  ordered_json deadline = nullptr;
  if (decision.deadline.has_value()) deadline = TimeJson(*decision.deadline);
  const scaling::policy::Feasibility& feasibility = decision.feasibility;
  return {{"replicas", decision.replicas},
          {"tasks", decision.tasks},
          {"standby", decision.standby},
          {"binding", std::string(BindingName(decision.binding))},
          {"wanted", decision.wanted},
          {"deadline", deadline},
          {"feasible", feasibility.feasible},
          {"needs", feasibility.needs},
          {"late_by_ns", DurationJson(feasibility.late_by)},
          {"finish", TimeJson(feasibility.finish)}};
}

Binding BindingOf(const std::string& name) {
  for (int i = 0; i <= kLastBinding; ++i) {
    if (BindingName(static_cast<Binding>(i)) == name) return static_cast<Binding>(i);
  }
  throw json::other_error::create(500, absl::StrCat("no binding is called ", name), nullptr);
}

scaling::policy::Decision DecisionOf(const json& value) {
  scaling::policy::Decision decision;
  decision.replicas = value.at("replicas").get<int>();
  decision.tasks = value.at("tasks").get<int>();
  decision.standby = value.at("standby").get<int>();
  decision.binding = BindingOf(value.at("binding").get<std::string>());
  decision.wanted = value.at("wanted").get<int>();
  if (!value.at("deadline").is_null()) decision.deadline = TimeOf(value.at("deadline"));
  decision.feasibility.feasible = value.at("feasible").get<bool>();
  decision.feasibility.needs = value.at("needs").get<int>();
  decision.feasibility.late_by = DurationOf(value.at("late_by_ns"));
  decision.feasibility.finish = TimeOf(value.at("finish"));
  return decision;
}

scaling::policy::Spending SpendingOf(const json& value) {
  return {TimeOf(value.at("until")), value.at("replicas").get<int>(),
          value.at("minutes").get<std::vector<std::pair<int64_t, double>>>()};
}

RecordedEvent EventOf(const json& line) {
  if (const auto found = line.find("announce"); found != line.end()) {
    return scaling::policy::Announcement{TimeOf(found->at("at")), found->at("items").get<int64_t>(),
                                         found->at("id").get<uint64_t>()};
  }
  if (const auto found = line.find("rules"); found != line.end()) {
    return RecordedRules{found->get<std::string>()};
  }
  if (const auto found = line.find("spent"); found != line.end()) return SpendingOf(*found);
  return RecordedStep{ObservationOf(line.at("see")), DecisionOf(line.at("decide"))};
}

ordered_json EventJson(const scaling::policy::Announcement& announcement) {
  return {{"announce",
           {{"at", TimeJson(announcement.at)},
            {"items", announcement.items},
            {"id", announcement.id}}}};
}

ordered_json EventJson(const RecordedRules& rules) { return {{"rules", rules.text}}; }

ordered_json EventJson(const scaling::policy::Spending& spending) {
  return {{"spent",
           {{"until", TimeJson(spending.until)},
            {"replicas", spending.replicas},
            {"minutes", ordered_json(spending.minutes)}}}};
}

ordered_json EventJson(const RecordedStep& step) {
  return {{"see", ObservationJson(step.observation)}, {"decide", DecisionJson(step.decision)}};
}

// Text that is not UTF-8, for example a queue's name, must not stop a recording.
std::string Dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string EncodeHeader(const RecordingHeader& header) {
  ordered_json json = {{"muster_recording", header.part == 1 ? 1 : kRecordingVersion},
                       {"target", header.target},
                       {"policy", PolicyJson(header.policy)}};
  if (header.part > 1) {
    json["part"] = header.part;
    json["rules"] = header.rules;
  }
  return Dump(json);
}

std::string EncodeEvent(const RecordedEvent& event) {
  return Dump(std::visit([](const auto& kind) { return EventJson(kind); }, event));
}

std::string EncodeDecision(const scaling::policy::Decision& decision) {
  return Dump(DecisionJson(decision));
}

absl::StatusOr<RecordingHeader> DecodeHeader(const std::string& line) {
  try {
    const json header = json::parse(line);
    const int version = header.at("muster_recording").get<int>();
    if (version > kRecordingVersion) {
      return absl::FailedPreconditionError(absl::StrCat("the recording has version ", version,
                                                        ", and this program reads up to ",
                                                        kRecordingVersion));
    }
    return RecordingHeader{header.at("target").get<std::string>(), PolicyOf(header.at("policy")),
                           header.value("part", 1), header.value("rules", "")};
  } catch (const json::exception& mistake) {
    return absl::DataLossError(absl::StrCat("this is no recording: ", mistake.what()));
  }
}

absl::StatusOr<RecordedEvent> DecodeEvent(const std::string& line) {
  try {
    return EventOf(json::parse(line));
  } catch (const json::exception& mistake) {
    return absl::DataLossError(mistake.what());
  }
}

namespace {

std::string PartBefore(const std::string& path) { return absl::StrCat(path, ".1"); }

}  // namespace

absl::StatusOr<std::unique_ptr<RecordingWriter>> RecordingWriter::Open(
    const std::string& path, const RecordingHeader& header, int64_t most_bytes) {
  // Only a regular file can hold a recording that would be lost.
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    return absl::AlreadyExistsError(absl::StrCat("recording '", path, "' exists already"));
  }
  std::unique_ptr<RecordingWriter> writer(new RecordingWriter(path, header, most_bytes));
  MUSTER_RETURN_IF_ERROR(writer->Begin());
  return writer;
}

absl::Status RecordingWriter::Write(const RecordedEvent& event) {
  if (const auto* const rules = std::get_if<RecordedRules>(&event)) header_.rules = rules->text;
  const std::string line = EncodeEvent(event);
  if (IsFull(line)) MUSTER_RETURN_IF_ERROR(BeginNextPart());
  return WriteLine(line);
}

bool RecordingWriter::IsFull(const std::string& line) const {
  const auto more = static_cast<int64_t>(line.size()) + 1;
  return bytes_ > header_bytes_ && bytes_ + more > most_bytes_;
}

// Unbuffered: a line that failed must not be written later, when the disk has room again.
absl::Status RecordingWriter::Begin() {
  file_ = std::ofstream();
  file_.rdbuf()->pubsetbuf(nullptr, 0);
  file_.open(path_, std::ios::out | std::ios::app | std::ios::binary);
  bytes_ = 0;
  MUSTER_RETURN_IF_ERROR(WriteLine(EncodeHeader(header_)));
  header_bytes_ = bytes_;
  return absl::OkStatus();
}

absl::Status RecordingWriter::BeginNextPart() {
  std::error_code error;
  // Never rename a device or a pipe.
  if (!std::filesystem::is_regular_file(path_, error)) return absl::OkStatus();
  // Synced first: else a power cut can leave nothing in the place of the part before.
  absl::Status moved = os::SyncPath(path_);
  if (moved.ok()) moved = os::Rename(path_, PartBefore(path_));
  if (!moved.ok()) {
    return absl::UnavailableError(
        absl::StrCat("recording '", path_, "' cannot be moved: ", moved.message()));
  }
  ++header_.part;
  return Begin();
}

absl::Status RecordingWriter::WriteLine(const std::string& line) {
  const std::string whole = absl::StrCat(line, "\n");
  file_.write(whole.data(), static_cast<std::streamsize>(whole.size()));
  bytes_ += static_cast<int64_t>(whole.size());
  if (file_.flush().good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("recording '", path_, "' cannot be written"));
}

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(const std::string& path) {
  std::unique_ptr<RecordingReader> reader(new RecordingReader);
  MUSTER_ASSIGN_OR_RETURN(reader->header_, reader->OpenPart(path));
  if (reader->header_.part == 1) return reader;
  std::unique_ptr<RecordingReader> before(new RecordingReader);
  absl::StatusOr<RecordingHeader> first = before->OpenPart(PartBefore(path));
  const bool precedes = first.ok() && first->part == reader->header_.part - 1 &&
                        first->target == reader->header_.target;
  if (!precedes) return reader;
  before->header_ = *std::move(first);
  before->next_path_ = path;
  return before;
}

absl::StatusOr<RecordingHeader> RecordingReader::OpenPart(const std::string& path) {
  path_ = path;
  line_ = 0;
  file_ = std::ifstream(path, std::ios::binary);
  if (!file_.good()) {
    return absl::NotFoundError(absl::StrCat("recording '", path, "' cannot be opened"));
  }
  std::string line;
  if (!ReadLine(&line)) {
    return absl::DataLossError(absl::StrCat("recording '", path, "' is empty"));
  }
  absl::StatusOr<RecordingHeader> header = DecodeHeader(line);
  if (!header.ok()) return base::Annotate(header.status(), absl::StrCat(path, " line 1"));
  return header;
}

bool RecordingReader::ReadLine(std::string* line) {
  // getline reaches the end of the file only in a line without a line feed.
  if (!std::getline(file_, *line) || file_.eof()) return false;
  ++line_;
  return true;
}

absl::StatusOr<std::optional<RecordedEvent>> RecordingReader::Next() {
  std::string line;
  while (!ReadLine(&line)) {
    if (next_path_.empty()) return std::nullopt;
    MUSTER_RETURN_IF_ERROR(OpenPart(std::exchange(next_path_, "")).status());
  }
  absl::StatusOr<RecordedEvent> event = DecodeEvent(line);
  if (!event.ok()) return base::Annotate(event.status(), absl::StrCat(path_, " line ", line_));
  return *std::move(event);
}

}  // namespace muster::scaling::recording
