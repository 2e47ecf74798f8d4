// SPDX-License-Identifier: Apache-2.0

// Every bound of the RPC layer, with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::rpc {

// gRPC's own default, so that a client in any language works as it is. Answers that could be larger
// come in pages or streams.
inline constexpr int kMaxMessageBytes = 4 << 20;
// Of all names and values that come with a call, each counted with 32 bytes more. gRPC's own
// default, too: what muster reads of it, a trace context, has some 600 bytes.
inline constexpr int kMaxMetadataBytes = 8 << 10;
// A status travels in HTTP/2 trailers, of which peers take 8 KiB by default. Percent-encoding makes
// up to 3 bytes of one of the message, base64 4 of 3 of the details, and these repeat the message.
inline constexpr size_t kMaxStatusMessageBytes = 1024;
inline constexpr size_t kMaxStatusDetailBytes = 2048;  // together; what does not fit is left out

// Calls at a time on one connection: a client beyond it waits, and the others go on.
inline constexpr int kMaxStreamsPerConnection = 256;
// A call that is answered synchronously holds a thread. Beyond this calls get ResourceExhausted.
inline constexpr int kMaxCallThreads = 512;

// Connections at a time to one server: more than the processes of a large mesh and ten thousand
// watchers need. An idle one takes about 20 KiB, so all of them a third of a gigabyte.
inline constexpr size_t kMaxConnections = 16'384;
// What a service raises its soft limit of descriptors to, if the hard limit allows: all
// connections, and the spare ones.
inline constexpr int64_t kEnoughDescriptors = 32'768;
// One in so many descriptors is kept from connections: for the files of the stores, and for calls
// to other servers.
inline constexpr int64_t kSpareDescriptorShare = 4;
// A client that has connected must say so long at most what it wants to speak.
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);

// Routers forget silent connections after some minutes, and a dead peer should be noticed within
// one.
inline constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
// A client that pings more often than this is cut off.
inline constexpr absl::Duration kMinPingInterval = absl::Seconds(10);

// A server that cannot be connected to is looked for at least so often.
inline constexpr absl::Duration kMaxReconnectWait = absl::Seconds(5);

// For callers that set no deadline: longer than any unary method should take, shorter than a person
// waits.
inline constexpr absl::Duration kDefaultCallTimeout = absl::Seconds(30);
// Tries of a call that is answered Unavailable, the first included. gRPC allows no more than 5.
inline constexpr int kMaxCallAttempts = 5;

// How long a server that let a call time out is spared further calls: less than a lease, so that
// what waits for it does not change hands.
inline constexpr absl::Duration kBreakerPause = absl::Seconds(5);

// The advice to clients how long to wait before the next try: a role that starts or has lost its
// store is back within seconds; a limit or a full disk takes an operator's action.
inline constexpr absl::Duration kRetryUnavailable = absl::Seconds(1);
inline constexpr absl::Duration kRetryExhausted = absl::Seconds(5);

// A certificate is renewed hours before it ends; a key that leaked should be gone sooner.
inline constexpr absl::Duration kCertificateRefresh = absl::Seconds(10);
// The operator who changes a policy waits until it holds.
inline constexpr absl::Duration kPolicyRefresh = absl::Seconds(1);
// A policy is written by a person, and each call goes through all of it.
inline constexpr size_t kMaxPolicyBytes = size_t{256} << 10;
inline constexpr size_t kMaxPolicyRoles = 100;
inline constexpr size_t kMaxPolicyEntries = 1000;  // members, or methods, of one role

}  // namespace muster::rpc
