// SPDX-License-Identifier: Apache-2.0

// The bounds of the Kubernetes client, each with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::kubernetes {

// One exchange with the API server: it answers in milliseconds, and a new leader of its own needs a
// few seconds.
inline constexpr absl::Duration kAttemptLimit = absl::Seconds(5);
// A call with all its attempts and the waits between them: the scaling agent waits for it.
inline constexpr absl::Duration kCallLimit = absl::Seconds(10);
inline constexpr int kMaxAttempts = 4;
// Before the second attempt; doubled before each further one.
inline constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxBackoff = absl::Seconds(5);

// How often a change is repeated after another writer changed the object meanwhile.
inline constexpr int kMaxConflicts = 5;

// A page of a list, and what one answer may hold: a pod has some KB, some tens with much in it.
inline constexpr int kPageSize = 200;
inline constexpr size_t kMaxAnswerBytes = size_t{32} << 20;
// Pages of one list: a target has at most some thousand pods.
inline constexpr int kMaxPages = 100;
// One event of a watch is one object: etcd holds none above 1.5 MB.
inline constexpr size_t kMaxEventBytes = size_t{4} << 20;
// The most of a server's own words that goes into an error.
inline constexpr size_t kMaxServerWords = 512;

// The server ends a watch after so long, and the client resumes it; this reveals a connection that
// died silently.
inline constexpr absl::Duration kWatchLength = absl::Minutes(4);
inline constexpr absl::Duration kWatchGrace = absl::Seconds(10);

// Connections that are kept open for the next call.
inline constexpr size_t kMaxIdleConnections = 4;

// A token, a namespace, a certificate, a kubeconfig.
inline constexpr size_t kMaxCredentialBytes = size_t{1} << 20;

}  // namespace muster::kubernetes
