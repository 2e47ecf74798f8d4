// SPDX-License-Identifier: Apache-2.0

// MemoryEventStreamStore: an EventStreamStore for tests. Keeps nothing; trims and fails on command.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream::testing {

// Thread-safe. Retention does nothing by itself.
class MemoryEventStreamStore final : public EventStreamStore {
 public:
  // `clock` is not owned; a reader waits by it.
  explicit MemoryEventStreamStore(base::Clock* clock) : clock_(clock) {}

  absl::Status Create(absl::string_view stream, const StreamOptions& options) override;
  absl::Status Delete(absl::string_view stream) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::StatusOr<StreamOptions> Describe(absl::string_view stream) override;
  absl::StatusOr<PartitionExtent> Extent(absl::string_view stream, int partition) override;
  absl::StatusOr<int64_t> Append(absl::string_view stream, int partition,
                                 absl::Span<const NewEvent> events) override;
  absl::StatusOr<std::unique_ptr<PartitionReader>> OpenReader(absl::string_view stream,
                                                              int partition,
                                                              int64_t offset) override;

  // Removes the events of a partition that lie before `first`.
  void Trim(const std::string& stream, int partition, int64_t first);
  // Readers pass over this event, as over one that a repair has found lost.
  void Lose(const std::string& stream, int partition, int64_t offset);
  // Each Append, OpenReader and Next is answered so until it is OK again.
  void AnswerAppends(absl::Status status);
  void AnswerReads(absl::Status status);
  // Appends wait until `held` is false.
  void HoldAppends(bool held);
  // Waits until so many Appends wait.
  void AwaitHeldAppends(int n);
  int appends() const;

 private:
  class Reader;
  struct Log {
    int64_t first = 1;
    std::vector<Event> events;
    std::set<int64_t> lost;

    int64_t next() const { return first + static_cast<int64_t>(events.size()); }
  };
  struct Stream {
    StreamOptions options;
    std::vector<Log> logs;
    uint64_t incarnation = 0;
  };

  // Null: there is none.
  Log* FindLocked(absl::string_view stream, int partition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, Stream> streams_ ABSL_GUARDED_BY(mu_);
  uint64_t streams_made_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status append_answer_ ABSL_GUARDED_BY(mu_);
  absl::Status read_answer_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int appends_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::stream::testing
