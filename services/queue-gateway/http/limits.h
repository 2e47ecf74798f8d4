// SPDX-License-Identifier: Apache-2.0

// Every bound of the HTTP server, with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::queue_gateway::http {

// Reading, writing and TLS; the work of a request is done elsewhere.
inline constexpr int kIoThreads = 2;
// Requests that run at a time. Gets and updates wait here for a sync of the disk, which they share:
// the more wait together, the fewer syncs there are. Of the puts a few hold a worker, as of the
// deletes, and act for those that come meanwhile (operations/gatherer.h).
inline constexpr int kWorkerThreads = 64;
// An idle connection costs a socket and about 4 KiB.
inline constexpr int kMaxConnections = 10'000;
// The request line and all headers. Azure allows 8 KiB of metadata, which travel as headers: of
// names of two bytes with no value, these take 60 KiB. Boost 1.74 throws on a header of 64 KiB, so
// that all of them together have to stay below.
inline constexpr size_t kMaxHeaderBytes = (size_t{64} << 10) - 1;
// 64 KiB of text, of which each character may be written as an entity of up to 10 bytes.
inline constexpr size_t kMaxBodyBytes = size_t{1} << 20;
// Bodies of requests that are read or worked on, and of replies that their peers have not taken, of
// all connections together. Beyond, a request gets 503 and is tried again; the requests that run by
// then are still answered.
inline constexpr size_t kMaxAllBodiesBytes = size_t{256} << 20;
// What is read and thrown away of a request that was refused: a peer that is still sending must
// see the reply, and a connection that is closed on it takes the reply along.
inline constexpr size_t kMaxLingerBytes = size_t{4} << 20;

// Between two requests. The SDKs keep connections, and open new ones without an error.
inline constexpr absl::Duration kIdleTimeout = absl::Minutes(2);
// How much earlier than that a peer is told to let the connection be.
inline constexpr absl::Duration kKeepAliveMargin = absl::Seconds(5);
// From the first byte of a request to its last; a slow peer is cut off.
inline constexpr absl::Duration kRequestTimeout = absl::Seconds(30);
// For the peer to take a whole reply, of at most 32 messages.
inline constexpr absl::Duration kReplyTimeout = absl::Seconds(60);
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);
inline constexpr absl::Duration kLingerTimeout = absl::Seconds(2);
// How often the files of the certificate are looked at, while connections come.
inline constexpr absl::Duration kCertificateRefresh = absl::Seconds(10);
// After a failed accept: the process has no descriptor left.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
// For a worker, or for the call that it shares with others. A request that has waited longer is
// not run if its peer has hung up meanwhile: it has asked again, or will. Within this time a peer
// may close its half of the connection.
inline constexpr absl::Duration kStaleAfter = absl::Seconds(1);

// Between looks at a peer that has sent something ahead while its request waits for a message.
inline constexpr absl::Duration kHangUpInterval = absl::Seconds(1);

}  // namespace muster::queue_gateway::http
