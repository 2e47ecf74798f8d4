// SPDX-License-Identifier: Apache-2.0

// JetStreamQueueStore: the QueueStore of many processes, on NATS JetStream.
//
// A queue is a work-queue stream with one durable pull consumer (stream_layout.h draws it). The
// traits of the engine name what the server cannot do. Further differences:
//
//   leases       last as long as the metadata of the queue says (kVisibilityName), or else
//                Settings::lease; the visibility that a receive asks for is ignored. An Update
//                renews for as long again. A change applies also to held leases, from the last time
//                that the server heard of them. Other processes learn it from their next verb that
//                asks for the consumer: CreateQueue, GetMetadata, Stats, Peek
//   receipts     a stale receipt is not refused: the server accepts an acknowledgement from any
//                client. Only the test in the report decides what counts (docs/reliability.md). A
//                receipt from before the server lost its data may settle another message of that
//                number; the batch then misses that message like any lost one
//   loss         a queue is NotFound when its stream or consumer is gone, or another stream is in
//                its place; CreateQueue makes it anew, or says what is in the way
//   waits        a pull that waits at the server. One that a wait leaves behind takes one message
//   at
//                most, which is ready again at once (waiting_pulls.h)
//   Peek         shows only messages that were never delivered
//   poison       has ids of its own, and is listed and redriven in the order in which it was given
//                up: a page is found at once, however many dead letters there are
//   Stats        a message counts as in flight until it is settled or delivered again, even after
//                it was given back or its lease lapsed. Totals include redriven and purged
//                messages. After the death of the server, some settled messages may count for a
//                while (QueueStatsReader)
//   durability   an acknowledged put survives the death of the server. It survives a power cut only
//                if the server syncs each write: by default it does not, and 2.9 cannot. The death
//                of the server may undo a delete (seen with 2.9): the message comes again
//   dedup ids    are known for Settings::dedup_window after the put. A server that is restarted has
//                forgotten those of messages that are gone: it reads them from the messages that it
//                finds (findings/nats_dedup_forgets_what_is_gone_on_restart.sh)
//   Put          of many messages at once goes as an atomic batch (NATS ADR-50) if the server is
//                2.12 or later and syncs each write (ack_survives): it then syncs once for them all
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/nats/connection.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

struct Options {
  Settings settings;  // except atomic_puts, which OpenJetStreamQueues decides
  // The durability that the operator of the server states; the server cannot be asked.
  queue::Survives ack_survives = queue::Survives::kProcess;
  // A call without an answer within this time returns Unavailable.
  absl::Duration timeout = absl::Seconds(5);
  // A process that makes a queue takes a few milliseconds for it, and longer on a busy machine.
  // After this time another one takes it for dead, and makes the queue in its place.
  absl::Duration maker_grace = absl::Seconds(3);
  base::Clock* clock = base::RealClock();  // not owned
  // The name of this process among the holders of messages. When this process is dead, others give
  // back what it held (ReleaseHeldBy) by this name. No other process has or had the name. Empty:
  // its messages are not given back, and come again when their leases lapse.
  std::string holder;
  // A prompt connection to the same server, for calls that workers wait for; not owned, outlives
  // the store. nullptr: everything uses the one connection, and each note of an attempt is awaited.
  nats::Connection* prompt = nullptr;
};

// `connection` is not owned and outlives the store. FailedPrecondition: the server runs no
// JetStream, or has streams of ours with settings that do not fit. Unavailable: no answer.
absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenJetStreamQueues(nats::Connection* connection,
                                                                       const Options& options);

}  // namespace muster::queue::jetstream
