// SPDX-License-Identifier: Apache-2.0

// GroupCommit: small changes of several threads share a transaction, and so its sync.
//
//   thread 1 ─ Run ─► leads ──────────────► transaction ─► done      (changes that come meanwhile
//   thread 2 ─ Run ─► waits ─┬─► leads ──────────────────► done       wait for the next one)
//   thread 3 ─ Run ─► waits ─┘─► is in it ────────────────► done
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"

namespace muster::report::sqlite {

// Thread-safe.
class GroupCommit {
 public:
  // A change within a transaction that others have begun, and commit. An error undoes it alone.
  using Change = absl::FunctionRef<absl::Status()>;
  // One of the changes that share a transaction, and what came of it.
  struct Member {
    Change change;
    absl::Status result = {};
    bool done = false;
  };
  // Makes the changes in one transaction, and commits it. Sets each result: OK once it is durable.
  using Commit = std::function<void(absl::Span<Member* const> group)>;

  // `commit` is called by one thread at a time.
  explicit GroupCommit(Commit commit) : commit_(std::move(commit)) {}

  // Makes `change`, in one transaction with those of other threads that have come meanwhile, and
  // answers its result.
  absl::Status Run(Change change) ABSL_LOCKS_EXCLUDED(mu_);

  // Changes that wait for their transaction to begin.
  size_t waiting() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const Commit commit_;

  base::Mutex mu_;
  base::CondVar changed_;
  std::deque<Member*> waiting_ ABSL_GUARDED_BY(mu_);
  bool led_ ABSL_GUARDED_BY(mu_) = false;  // a thread is in commit_
};

}  // namespace muster::report::sqlite
