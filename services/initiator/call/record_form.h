// SPDX-License-Identifier: Apache-2.0

// RecordForm: what the record of a call must be for its job, and what precedes records in a batch.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/input/format.h"
#include "muster/v1/call_service.pb.h"

namespace muster::initiator::call {

// So that a record and the header of any sensible job are short content (batch/source.h).
inline constexpr size_t kMaxCallRecordBytes = size_t{15} << 10;

// Immutable and thread-safe.
class RecordForm {
 public:
  explicit RecordForm(input::InputFormat format);

  // The first line of a batch of such records, with its line end; empty: the format has none.
  const std::string& header() const { return header_; }
  // Records that a batch may hold and be taken as each of them alone would be.
  size_t max_records() const;

  // The record of the request, without its line end: exactly one, which the job's parser takes. So
  // it changes nothing for the records beside it. InvalidArgument naming the field.
  absl::StatusOr<std::string> RecordIn(const v1::CallRequest& request) const;

 private:
  using Fields = google::protobuf::Map<std::string, std::string>;

  absl::Status Check(absl::string_view record) const;
  // The text of each of sources_; those that are absent are not there.
  absl::StatusOr<std::map<std::string, std::string>> TextsOf(const Fields& fields) const;
  absl::StatusOr<std::string> Write(const Fields& fields) const;

  const input::InputFormat format_;
  // Names of fields or members, or positions as text, each once: in the order of the columns, and
  // of a CSV without a header in the order of the fields.
  std::vector<std::string> sources_;
  std::string header_;
};

}  // namespace muster::initiator::call
