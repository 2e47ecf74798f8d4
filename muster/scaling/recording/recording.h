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
// A recording that grows too long goes on in a new file, and what was so far is FILE.1. The new
// file's header tells which part it is and holds the rules in force, for whoever has it alone:
//
//   {"muster_recording":2,"target":"billing","policy":{…},"part":2,"rules":"mode: act\n…"}
//
// To change the format: keep reading what has been written; add members with a default that means
// what their absence did; raise kRecordingVersion where an old reader would go wrong. The golden
// tests hold version 1, which first parts still have, and version 2.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::recording {

inline constexpr int kRecordingVersion = 2;
// Of a file: some hours of a busy target.
inline constexpr int64_t kDefaultRecordingBytes = int64_t{64} << 20;
// Less would hardly hold the rules.
inline constexpr int64_t kMinRecordingBytes = int64_t{8} << 20;

struct RecordingHeader {
  std::string target;
  scaling::policy::DeadlineOptions policy;
  int part = 1;
  std::string rules = {};  // in force where a later part begins; empty: none were
};

struct RecordedRules {
  std::string text;
};

struct RecordedStep {
  scaling::policy::Observation observation;
  scaling::policy::Decision decision;
};

using RecordedEvent = std::variant<scaling::policy::Announcement, RecordedRules, RecordedStep>;

// One line each, without its end.
std::string EncodeHeader(const RecordingHeader& header);
std::string EncodeEvent(const RecordedEvent& event);
std::string EncodeDecision(const scaling::policy::Decision& decision);
// DataLoss: it is none. FailedPrecondition: of a later version.
absl::StatusOr<RecordingHeader> DecodeHeader(const std::string& line);
absl::StatusOr<RecordedEvent> DecodeEvent(const std::string& line);

// Writes a new recording; begin it before the policy is first asked, or it cannot be decided anew.
// Before a file is longer than `most_bytes`, it becomes FILE.1 in place of the one that was, and
// another is begun. What is no regular file is written for ever. Not thread-safe.
class RecordingWriter {
 public:
  // AlreadyExists: there is such a file; nobody else's recording is overwritten.
  static absl::StatusOr<std::unique_ptr<RecordingWriter>> Open(
      const std::string& path, const RecordingHeader& header,
      int64_t most_bytes = kDefaultRecordingBytes);

  // The line is with the operating system when this returns. Unavailable: it could not be written,
  // and the recording is of no use from here on.
  absl::Status Write(const RecordedEvent& event);

 private:
  RecordingWriter(std::string path, RecordingHeader header, int64_t most_bytes)
      : path_(std::move(path)), most_bytes_(most_bytes), header_(std::move(header)) {}

  absl::Status Begin();
  absl::Status BeginNextPart();
  bool IsFull(const std::string& line) const;
  absl::Status WriteLine(const std::string& line);

  const std::string path_;
  const int64_t most_bytes_;
  RecordingHeader header_;  // of the file that is written
  int64_t header_bytes_ = 0;
  int64_t bytes_ = 0;
  std::ofstream file_;
};

// Reads FILE.1 first where it is the part before. Not thread-safe.
class RecordingReader {
 public:
  // NotFound, and as DecodeHeader.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(const std::string& path);

  // Of the first part that there is. Above 1, what the policy knew before is not in the recording.
  const RecordingHeader& header() const { return header_; }

  // nullopt at the end; a last line without its end is what a writer that was killed leaves, and
  // none. DataLoss names file and line.
  absl::StatusOr<std::optional<RecordedEvent>> Next();

  // Of the event that Next answered last.
  const std::string& file() const { return path_; }
  int64_t line() const { return line_; }

 private:
  RecordingReader() = default;
  absl::StatusOr<RecordingHeader> OpenPart(const std::string& path);
  bool ReadLine(std::string* line);

  std::string path_;
  std::string next_path_;  // of the part after this one; empty: this is the last
  std::ifstream file_;
  int64_t line_ = 0;
  RecordingHeader header_;
};

}  // namespace muster::scaling::recording
