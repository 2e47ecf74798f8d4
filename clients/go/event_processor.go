// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/muster/internal/musterv1"
)

// Waits between two calls of a processor whose server was lost.
const (
	minSessionWait = 200 * time.Millisecond
	maxSessionWait = 5 * time.Second
)

// EventHandlers are what an EventProcessor calls; only OnEvent is needed. Calls for one partition never
// overlap, those for different ones do, except for OnError.
type EventHandlers struct {
	// Handles an event. After an error or a panic, OnError is told, and the event comes again after growing
	// waits. The context ends when the server is lost.
	OnEvent func(ctx context.Context, partition *PartitionContext, event Event) error
	// Hears what fails; the processor goes on.
	OnError func(ProcessorError)
	// The partition's events follow.
	OnPartitionInitializing func(partition *PartitionContext)
	// Hears why no more events come: "handed over", "shutdown", "replayed" or "lost". May save a last
	// checkpoint.
	OnPartitionClosing func(ctx context.Context, partition *PartitionContext, reason string)
}

// ProcessorError is what failed; the processor goes on.
type ProcessorError struct {
	Partition  int32  // -1: none
	Operation  string // "open", "read", "handle", "retention", "beyond end", "lost" or "membership"
	Err        error
	EventsLost int64 // of "retention" and "lost"
}

func (e ProcessorError) Error() string {
	return fmt.Sprintf("muster: partition %d: %s: %v", e.Partition, e.Operation, e.Err)
}

// PartitionContext is a partition that this member owns, from its opening to its close.
type PartitionContext struct {
	Partition int32
	Epoch     int64 // a later owner has a higher one: what is written elsewhere can check it
	BeginsAt  int64 // the offset of the first event
	session   *eventSession
}

// UpdateCheckpoint saves that event and all before it are done with; the group goes on behind it. To be called
// by OnEvent and OnPartitionClosing, as often as they like.
//
// FailedPrecondition: another member may own the partition. Aborted: a replay has moved the checkpoint, and
// the partition is opened again there. Unavailable: the server is lost.
func (p *PartitionContext) UpdateCheckpoint(ctx context.Context, event Event) error {
	return p.session.save(ctx, p.Partition, event.Offset)
}

// EventProcessorOptions of a member; the zero value is for a mesh on this machine.
type EventProcessorOptions struct {
	// PEM files, as those of Options.
	CA, Certificate, Key string
	// No two members of a group have the same; empty: the server makes one.
	Member string
	// Where the group begins in a partition without a checkpoint: 0 with the first event that is kept, -1
	// behind the last.
	BeginAt int64
	// Of the group's cycles, the same for all members; 0: 10 s.
	Interval time.Duration
	// Partitions that are handled at once; 0: 16.
	MaxConcurrency int
}

// EventProcessor reads a stream as a member of a group: with the group's others it shares the partitions, and
// gets the events of each that it owns in order, each at least once. To be closed.
//
// The server owns the partitions for this process as long as its call lives, so they go to others when the
// process dies. One event of a partition is on its way at a time.
type EventProcessor struct {
	channel     *grpc.ClientConn
	streams     musterv1.StreamServiceClient
	start       *musterv1.ProcessEventsStart
	concurrency int
	closing     sync.Once
	closed      chan struct{}
}

// NewEventProcessor makes a member of a group; server is an initiator's HOST:PORT.
func NewEventProcessor(server, stream, group string, options EventProcessorOptions) (*EventProcessor, error) {
	channel, err := open(server, pemFiles{options.CA, options.Certificate, options.Key})
	if err != nil {
		return nil, err
	}
	start := &musterv1.ProcessEventsStart{Stream: stream, Group: group, Member: options.Member, BeginAt: options.BeginAt}
	if options.Interval != 0 {
		start.Interval = durationpb.New(options.Interval)
	}
	if options.MaxConcurrency <= 0 {
		options.MaxConcurrency = 16
	}
	return &EventProcessor{channel: channel, streams: musterv1.NewStreamServiceClient(channel), start: start,
		concurrency: options.MaxConcurrency, closed: make(chan struct{})}, nil
}

// Close closes the connection. A Run ends at once with ErrClosed, as when the server is lost: the contexts of its
// handlers end, it waits until they have returned, and their events come again. To finish them, end its ctx instead.
func (p *EventProcessor) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.channel.Close()
}

// Run handles events until ctx ends; then it finishes the events in hand, closes the partitions, and returns
// nil. A lost server is called again. The error is what cannot pass by itself, such as NotFound,
// FailedPrecondition when another member has started with this one's name, and ErrClosed after Close.
func (p *EventProcessor) Run(ctx context.Context, handlers EventHandlers) error {
	told := &eventHandlers{EventHandlers: handlers}
	wait := minSessionWait
	for ctx.Err() == nil {
		session := newEventSession(told, p.concurrency)
		err := session.run(ctx, p.streams, p.start)
		if err == nil {
			return nil
		}
		if isClosed(p.closed) {
			return ErrClosed
		}
		trouble := fromRPC(err)
		if !mayPass(trouble) {
			return trouble
		}
		told.tell(ProcessorError{Partition: -1, Operation: "open", Err: trouble})
		if wait = min(2*wait, maxSessionWait); session.started {
			wait = minSessionWait
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.closed:
			timer.Stop()
			return ErrClosed
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}
