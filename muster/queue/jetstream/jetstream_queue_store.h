// JetStreamQueueStore: the QueueStore of many processes, on NATS JetStream.
//
// A queue is a work-queue stream with one durable pull consumer (names.h draws it). What the server
// does not do, its traits say, and:
//   leases       last as long as the queue's metadata says (queue/lease_metadata.h), or else as
//                Settings::lease, whatever a receiver asks; an Update asks for as long again. Set
//                otherwise, leases that are held last so long too, from when the server heard of
//                them last; other processes learn it from the next verb here that asks for the
//                consumer: CreateQueue, GetMetadata, Stats, Peek
//   receipts     a stale one is not refused: the server takes an acknowledgement from anybody.
//                Only the report's own test decides what counts (docs/reliability.md). One from
//                before the server lost its data may settle another message of that number, which
//                is then missed like any that is lost
//   loss         a queue whose stream or consumer is gone, or has another stream in its place, is
//                NotFound; CreateQueue makes it anew, or says what is in the way
//   Peek         shows what was never delivered
//   Stats        a message is in flight until it is settled or delivered again: given back, or its
//                lease lapsed, it still is; totals count what a redrive or a purge did, too. After
//                the server's death, some that are settled may count for a while (queue_census.h)
//   durability   a put that was acknowledged survives the server's death, and a power cut only
//                where the server syncs each write: it does not by default, and 2.9 cannot be told
//                to. A delete may be undone by the server's death (seen with 2.9): the message
//                comes again
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
  Settings settings;
  // What the server's operator says of it; it cannot be asked.
  queue::Survives ack_survives = queue::Survives::kProcess;
  // A call that has no answer within this time is Unavailable.
  absl::Duration timeout = absl::Seconds(5);
  base::Clock* clock = base::RealClock();  // not owned
  // A prompt connection to the same server, for what workers wait for; not owned, outlives the
  // store. nullptr: all goes over the one connection, and each attempt's note is awaited.
  nats::Connection* prompt = nullptr;
};

// `connection` is not owned and outlives the store. FailedPrecondition: the server runs no
// JetStream, or has streams of ours with settings that do not fit. Unavailable: no answer.
absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenJetStreamQueues(nats::Connection* connection,
                                                                       const Options& options);

}  // namespace muster::queue::jetstream
