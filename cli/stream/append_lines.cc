// SPDX-License-Identifier: Apache-2.0
#include "cli/stream/append_lines.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "muster/base/status.h"
#include "muster/os/process_start.h"
#include "muster/stream/event_stream_store.h"

namespace muster::cli {
namespace {

// The lines of standard input.
class InputLines {
 public:
  // False: there are no more, or they cannot be read.
  bool Next(std::string* line) {
    const bool is_there = static_cast<bool>(std::getline(std::cin, *line));
    // An error of the C library's input is to std::cin an end as any other, and what was read of
    // the line before it is a line.
    if (std::ferror(stdin) != 0 || std::cin.bad()) {
      status_ = absl::ErrnoToStatus(errno, "standard input");
      if (status_.ok()) status_ = absl::UnknownError("standard input: it ends by an error");
      return false;
    }
    read_ += is_there ? 1 : 0;
    return is_there;
  }
  int64_t read() const { return read_; }
  const absl::Status& status() const { return status_; }

 private:
  int64_t read_ = 0;
  absl::Status status_;
};

// The events of lines, in their order: one of each.
class LineSender {
 public:
  LineSender(stream::EventProducer* producer, int partition, int64_t* sent)
      : producer_(producer), partition_(partition), sent_(sent) {}

  // One that ValidateAppend has passed.
  absl::Status Add(stream::NewEvent event) {
    bytes_ += stream::SizeOf(event);
    events_.push_back(std::move(event));
    const bool is_full =
        events_.size() >= stream::kMaxAppendEvents || bytes_ >= stream::kMaxBodyBytes;
    return is_full ? Flush() : absl::OkStatus();
  }

  // Counts all that is sent: where one partition fails, others do not.
  absl::Status Flush() {
    absl::Status failed;
    bytes_ = 0;
    for (const auto& place : producer_->SendAll(std::exchange(events_, {}), partition_)) {
      ++lines_;
      *sent_ += place.ok() ? 1 : 0;
      if (!place.ok() && failed.ok()) {
        failed = base::Annotate(place.status(), absl::StrCat("line ", lines_));
      }
    }
    return failed;
  }

 private:
  stream::EventProducer* const producer_;  // not owned
  const int partition_;
  int64_t* const sent_;                   // not owned
  std::vector<stream::NewEvent> events_;  // not sent yet
  size_t bytes_ = 0;                      // of `events_`
  int64_t lines_ = 0;                     // before `events_`
};

stream::NewEvent EventOf(std::string line, const LineOptions& options) {
  stream::NewEvent event{.key = options.key};
  const size_t at = options.separator.empty() ? std::string::npos : line.find(options.separator);
  if (at != std::string::npos) {
    event.key = line.substr(0, at);
    line.erase(0, at + options.separator.size());
  }
  event.body = std::move(line);
  return event;
}

}  // namespace

absl::Status AppendLines(stream::EventProducer* producer, const LineOptions& options,
                         int64_t* sent) {
  *sent = 0;
  if (!os::HasInput()) return absl::ErrnoToStatus(EBADF, "standard input");
  InputLines lines;
  LineSender sender(producer, options.partition, sent);
  absl::Status refused;
  for (std::string line; lines.Next(&line);) {
    stream::NewEvent event = EventOf(std::move(line), options);
    // Before it goes to the producer, which would send what is behind it all the same.
    refused = stream::ValidateAppend(absl::MakeConstSpan(&event, 1));
    if (!refused.ok()) {
      refused = base::Annotate(refused, absl::StrCat("line ", lines.read()));
      break;
    }
    MUSTER_RETURN_IF_ERROR(sender.Add(std::move(event)));
  }
  MUSTER_RETURN_IF_ERROR(sender.Flush());
  return refused.ok() ? lines.status() : refused;
}

}  // namespace muster::cli
