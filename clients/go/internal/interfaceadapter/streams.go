// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"muster.example/muster"
)

// send appends one event with a property, or several without.
func send(ctx context.Context, c call) (any, error) {
	producer, err := muster.NewEventProducer(c.Server, c.Stream, muster.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = producer.Close() }() // all was answered
	var events []muster.Event
	for _, pair := range c.Events {
		events = append(events, muster.Event{Key: []byte(pair[0]), Body: []byte(pair[1])})
	}
	if len(events) == 1 {
		events[0].Properties = map[string][]byte{"kind": []byte("test")}
	}
	sent := func() ([]muster.EventPlace, error) { return producer.Send(ctx, events...) }
	if c.Partition != nil {
		sent = func() ([]muster.EventPlace, error) { return producer.SendTo(ctx, *c.Partition, events...) }
	}
	told := [][2]int64{}
	places, err := sent()
	for _, place := range places {
		told = append(told, [2]int64{int64(place.Partition), place.Offset})
	}
	return told, err
}

// process handles events until there were c.Count different ones, and then stops, or closes; the first c.Fail
// calls fail.
func process(ctx context.Context, c call) (any, error) {
	processor, err := muster.NewEventProcessor(c.Server, c.Stream, c.Group,
		muster.EventProcessorOptions{Interval: 500 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	defer func() { _ = processor.Close() }() // it has run
	running, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	calls, seen, failures, reasons := 0, map[[2]int64]bool{}, []string{}, map[string]bool{}
	err = processor.Run(running, muster.EventHandlers{
		OnEvent: func(ctx context.Context, partition *muster.PartitionContext, event muster.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls <= c.Fail {
				return errors.New("not yet")
			}
			if len(seen) == c.Count { // it came before the server heard of the end, and is another member's
				return errors.New("no more")
			}
			// Before the checkpoint: its answer may be lost with the server, and the event does not come again.
			seen[[2]int64{int64(partition.Partition), event.Offset}] = true
			err := errors.Join(answers.Encode(map[string]any{"event": []any{partition.Partition, event.Offset,
				string(event.Key), string(event.Body), append([]string{}, slices.Sorted(maps.Keys(event.Properties))...)}}),
				partition.UpdateCheckpoint(ctx, event))
			if len(seen) == c.Count && c.Close {
				_ = processor.Close() // Run says whether it has ended
			} else if len(seen) == c.Count {
				stop()
			}
			return err
		},
		OnError: func(trouble muster.ProcessorError) { failures = append(failures, trouble.Operation) },
		OnPartitionClosing: func(_ context.Context, _ *muster.PartitionContext, reason string) {
			mu.Lock()
			defer mu.Unlock()
			reasons[reason] = true
		},
	})
	if c.Close && errors.Is(err, muster.ErrClosed) {
		err = nil
	}
	return map[string]any{"errors": failures, "reasons": slices.Sorted(maps.Keys(reasons))}, err
}
