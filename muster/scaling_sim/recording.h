// Recordings: what a scaling policy was told and shown in a live run, and what it decided, so that
// the same run can be decided anew.
//
// A text file of JSON objects, one a line, in the order of what happened. Times are nanoseconds
// since 1970, durations nanoseconds; null is never, or none.
//
//   {"muster_recording":1,"target":"billing","policy":{"sla_ns":…,"aim_ns":…,"patience":…,…}}
//   {"rules":"mode: act\n…"}                        the text of the rules, when they come in force
//   {"announce":{"at":…,"items":…,"id":…}}
//   {"see":{"now":…,"bounds":{…},"fleet":{…},"estimates":{…},"queues":[…]},"decide":{…}}
//
// To change the format: keep reading what has been written; add members with a default that means
// what their absence did; raise kRecordingVersion where an old reader would go wrong. The golden
// test holds version 1.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/scaling/deadline_options.h"
#include "muster/scaling/decision.h"
#include "muster/scaling/observation.h"

namespace muster::scaling_sim {

inline constexpr int kRecordingVersion = 1;

struct RecordingHeader {
  std::string target;
  scaling::DeadlineOptions policy;
};

struct RecordedRules {
  std::string text;
};

struct RecordedStep {
  scaling::Observation observation;
  scaling::Decision decision;
};

using RecordedEvent = std::variant<scaling::Announcement, RecordedRules, RecordedStep>;

// One line each, without its end.
std::string EncodeHeader(const RecordingHeader& header);
std::string EncodeEvent(const RecordedEvent& event);
std::string EncodeDecision(const scaling::Decision& decision);
// DataLoss: it is none. FailedPrecondition: of a later version.
absl::StatusOr<RecordingHeader> DecodeHeader(const std::string& line);
absl::StatusOr<RecordedEvent> DecodeEvent(const std::string& line);

// Writes a new recording; begin it before the policy is first asked, or it cannot be decided anew.
// Not thread-safe.
class RecordingWriter {
 public:
  // AlreadyExists: there is such a file; a recording is never overwritten.
  static absl::StatusOr<std::unique_ptr<RecordingWriter>> Open(const std::string& path,
                                                               const RecordingHeader& header);

  // The line is with the operating system when this returns. Unavailable: it could not be written,
  // and the recording is of no use from here on.
  absl::Status Write(const RecordedEvent& event);

 private:
  explicit RecordingWriter(std::string path) : path_(std::move(path)) {}
  absl::Status WriteLine(const std::string& line);

  const std::string path_;
  std::ofstream file_;
};

// Not thread-safe.
class RecordingReader {
 public:
  // NotFound, and as DecodeHeader.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(const std::string& path);

  const RecordingHeader& header() const { return header_; }

  // nullopt at the end; a last line without its end is what a writer that was killed leaves, and
  // none. DataLoss names file and line.
  absl::StatusOr<std::optional<RecordedEvent>> Next();

  int64_t line() const { return line_; }  // of the event that Next answered last

 private:
  explicit RecordingReader(std::string path) : path_(std::move(path)) {}
  bool ReadLine(std::string* line);

  const std::string path_;
  std::ifstream file_;
  int64_t line_ = 0;
  RecordingHeader header_;
};

}  // namespace muster::scaling_sim
