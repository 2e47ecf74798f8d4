// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/muster/internal/musterv1"
)

// BatchState says where a batch stands. One of a newer muster has no name here.
type BatchState int

// The states, as in docs/glossary.md.
const (
	Open      = BatchState(musterv1.BatchState_BATCH_STATE_OPEN)
	Sealed    = BatchState(musterv1.BatchState_BATCH_STATE_SEALED)
	Complete  = BatchState(musterv1.BatchState_BATCH_STATE_COMPLETE)
	Cancelled = BatchState(musterv1.BatchState_BATCH_STATE_CANCELLED)
)

func (s BatchState) String() string {
	switch s {
	case Open:
		return "open"
	case Sealed:
		return "sealed"
	case Complete:
		return "complete"
	case Cancelled:
		return "cancelled"
	}
	return fmt.Sprintf("state %d", int(s))
}

// Flow is how far a batch has come, in transactions.
type Flow struct {
	Read, Queued, Processed, Committed int64
	Split                              float64 // share of the content that was split, 0 to 1
}

// Batch is a batch as it stood at its revision.
type Batch struct {
	Number         uint64
	Revision       uint64
	Job            string
	JobRevision    string
	HandlerVersion string // that the batch is bound to; empty: to none, and any works on it
	RequestID      []byte
	State          BatchState
	Complete       bool // every item is counted or dead-lettered
	Created        time.Time
	Completed      time.Time     // zero: it is not complete
	SLA            time.Duration // the promised latency; 0: nothing is promised
	Deadline       time.Time     // when it ends; zero: nothing is promised
	LateBy         time.Duration // later than promised, or than promised by now
	AtRisk         bool          // it is open, and at its pace so far it will be late
	Flow           Flow
	Transactions   int64 // counted: aggregated + rejected + dead-lettered
	Aggregated     int64
	Rejected       int64
	DeadLettered   int64
	Items          int64
	ItemsDead      int64
	Attempts       int64
	Seconds        float64
	Problem        string            // the sentence why it waits, since when, and what to do; empty: it goes on
	CancelReason   string            // of a cancelled batch: why; may be empty
	Traceparent    string            // W3C trace that all work on the batch belongs to; empty: it has none
	Labels         map[string]string // as they were submitted
	CountsProblem  string            // in a list: why the counts are not known, and zero; empty: they are
	RetryOf        uint64            // the batch whose rejections it retries; 0: it is no retry, or that one is deleted
	RetriedIn      []uint64          // the batches that retry its rejections: the newest 100
}

// Over says that nothing changes any more, unless the batch's poison is redriven.
func (b *Batch) Over() bool { return b.Complete || b.State == Complete || b.State == Cancelled }

func toTime(stamp *timestamppb.Timestamp) time.Time {
	if stamp == nil {
		return time.Time{}
	}
	return stamp.AsTime()
}

func toBatch(status *musterv1.BatchStatus) *Batch {
	flow := status.GetProgress()
	return &Batch{
		Number:         status.GetBatch(),
		Revision:       status.GetRevision(),
		Job:            status.GetJob(),
		JobRevision:    status.GetJobRevision(),
		HandlerVersion: status.GetHandlerVersion(),
		RequestID:      status.GetRequestId(),
		State:          BatchState(status.GetState()),
		Complete:       status.GetComplete(),
		Created:        toTime(status.GetCreated()),
		Completed:      toTime(status.GetCompleted()),
		SLA:            status.GetSla().AsDuration(),
		Deadline:       toTime(status.GetDeadline()),
		LateBy:         status.GetLateBy().AsDuration(),
		AtRisk:         status.GetAtRisk(),
		Flow: Flow{flow.GetRead(), flow.GetQueued(), flow.GetProcessed(), flow.GetCommitted(),
			flow.GetSplit()},
		Transactions:  status.GetTransactions(),
		Aggregated:    status.GetAggregated(),
		Rejected:      status.GetRejected(),
		DeadLettered:  status.GetDeadLettered(),
		Items:         status.GetItems(),
		ItemsDead:     status.GetItemsDead(),
		Attempts:      status.GetAttempts(),
		Seconds:       status.GetSeconds(),
		Problem:       status.GetProblem(),
		CancelReason:  status.GetCancelReason(),
		Traceparent:   status.GetTraceparent(),
		Labels:        status.GetLabels(),
		CountsProblem: status.GetCountsProblem(),
		RetryOf:       status.GetRetryOf(),
		RetriedIn:     status.GetRetriedIn(),
	}
}
