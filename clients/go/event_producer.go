// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"muster.example/muster/internal/musterv1"
)

// EventPlace is where an event lies.
type EventPlace struct {
	Partition int32
	Offset    int64
}

// Event is an event of a stream. What is sent has no Offset and no Appended.
type Event struct {
	Offset     int64     // in its partition, from 1
	Appended   time.Time // when the stream took it
	Key        []byte    // events of one key go to one partition, and keep their order; empty: none
	Body       []byte
	Properties map[string][]byte
}

// EventProducer appends to one stream of a mesh. For several goroutines; to be closed.
type EventProducer struct {
	channel *grpc.ClientConn
	streams musterv1.StreamServiceClient
	stream  string
	timeout time.Duration
}

// NewEventProducer makes a producer of a stream; server is an initiator's HOST:PORT. Of the options, it takes
// the files and the Timeout.
func NewEventProducer(server, stream string, options Options) (*EventProducer, error) {
	channel, err := open(server, pemFiles{options.CA, options.Certificate, options.Key})
	if err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	return &EventProducer{channel, musterv1.NewStreamServiceClient(channel), stream, options.Timeout}, nil
}

// Close cancels what still runs.
func (p *EventProducer) Close() error { return p.channel.Close() }

// Send appends events, each to the partition of its key, those without a key to the next in turn: at most
// 1,000, and 3 MiB together. It returns their places, in their order, when they are durable.
//
// A call whose outcome is unknown is repeated, and its events may come twice. After an error any of them may
// have been appended.
func (p *EventProducer) Send(ctx context.Context, events ...Event) ([]EventPlace, error) {
	return p.send(ctx, nil, events)
}

// SendTo appends events to one partition and does not look at their keys; otherwise it is as Send.
func (p *EventProducer) SendTo(ctx context.Context, partition int32, events ...Event) ([]EventPlace, error) {
	return p.send(ctx, &partition, events)
}

func (p *EventProducer) send(ctx context.Context, partition *int32, events []Event) ([]EventPlace, error) {
	ctx, cancel := within(ctx, p.timeout)
	defer cancel()
	request := &musterv1.AppendEventsRequest{Stream: p.stream, Partition: partition}
	for _, event := range events {
		request.Events = append(request.Events,
			&musterv1.StreamEvent{Key: event.Key, Body: event.Body, Properties: event.Properties})
	}
	response, err := p.streams.AppendEvents(ctx, request)
	if err != nil {
		return nil, fromRPC(err)
	}
	var places []EventPlace
	for _, place := range response.GetPlaces() {
		places = append(places, EventPlace{place.GetPartition(), place.GetOffset()})
	}
	return places, nil
}

func toEvent(sent *musterv1.StreamEvent) Event {
	return Event{sent.GetOffset(), toTime(sent.GetAppended()), sent.GetKey(), sent.GetBody(), sent.GetProperties()}
}
