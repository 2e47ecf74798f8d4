// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/muster/internal/musterv1"
)

// maxAnswerBytes are of the 4 MiB that a message may have; the rest is for what is around an answer.
const maxAnswerBytes = maxMessageBytes - 1024

// maxAfter is what processors take.
const maxAfter = 7 * 24 * time.Hour

// outcome is what becomes of an item instead of its results.
type outcome struct {
	kind  string // retry, defer or dead
	why   string
	after time.Duration // 0: the job's retry policy decides
}

func (o *outcome) Error() string { return o.kind + ": " + o.why }

// Retry is for a Work to return: try again, after some time, at most 7 days, or, if that is 0, when the job's
// retry policy says; counts as an attempt.
func Retry(why string, after time.Duration) error { return &outcome{"retry", why, after} }

// Defer is for a Work to return: not now, and not the item's fault; as Retry, but the attempt does not
// count.
func Defer(why string, after time.Duration) error { return &outcome{"defer", why, after} }

// Dead is for a Work to return: it will never work, so the item goes to the poison queue at once.
func Dead(why string) error { return &outcome{kind: "dead", why: why} }

// run is an item in work.
type run struct {
	item   string
	stop   context.CancelFunc
	answer *musterv1.HandlerAnswer
}

// call belongs to the goroutine of serve, but for what runs hand over when they have ended.
type call struct {
	stream  musterv1.HandlerService_WorkServer
	job     *HandledJob
	places  map[string]int
	work    Work
	running map[string]*run // by the item's name; without those that were abandoned
	ended   chan *run
}

func newCall(stream musterv1.HandlerService_WorkServer, job *HandledJob, work Work) *call {
	places := map[string]int{}
	for place, column := range job.Columns {
		places[column] = place
	}
	return &call{stream: stream, job: job, places: places, work: work, running: map[string]*run{},
		ended: make(chan *run)}
}

// received is what the stream gave: a request, or why there will be no more.
type received struct {
	request *musterv1.WorkRequest
	err     error
}

func (c *call) serve(draining <-chan struct{}) error {
	requests := c.receive()
	leaving := false // one of the two sides: nothing new is taken
	for !leaving || len(c.running) > 0 {
		select {
		case got := <-requests:
			if errors.Is(got.err, io.EOF) {
				leaving, requests = true, nil
			} else if got.err != nil {
				return got.err
			} else {
				c.take(got.request, leaving || isClosed(draining))
			}
		case ended := <-c.ended:
			if err := c.finish(ended); err != nil {
				return err
			}
		case <-draining:
			leaving, draining = true, nil
		case <-c.stream.Context().Done(): // those that wait for serve may have seen that first, and said nothing
			return status.FromContextError(c.stream.Context().Err()).Err()
		}
	}
	return nil
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// receive gives what the processor says; its error is the last. The stream's context ends when serve
// returns, and with it everything that still waits for serve.
func (c *call) receive() <-chan received {
	requests := make(chan received)
	go func() {
		for {
			request, err := c.stream.Recv()
			select {
			case requests <- received{request, err}:
			case <-c.stream.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return requests
}

// take passes over steps that it does not know. An item that comes when the call is about to end has no
// answer, and goes elsewhere at no cost.
func (c *call) take(request *musterv1.WorkRequest, leaving bool) {
	switch step := request.Step.(type) {
	case *musterv1.WorkRequest_Item:
		if !leaving {
			c.start(step.Item)
		}
	case *musterv1.WorkRequest_Abandon:
		if abandoned := c.running[step.Abandon.GetItem()]; abandoned != nil {
			abandoned.stop()
			delete(c.running, abandoned.item)
		}
	}
}

func (c *call) start(sent *musterv1.HandlerItem) {
	ctx, stop := context.WithTimeout(c.stream.Context(), sent.GetDeadline().AsDuration())
	started := &run{item: sent.GetItem(), stop: stop}
	c.running[started.item] = started
	item := &Item{Job: c.job, Name: sent.GetItem(), Attempt: sent.GetAttempt(),
		Deadline: sent.GetDeadline().AsDuration(), Traceparent: sent.GetTraceparent(),
		Tracestate: sent.GetTracestate()}
	for _, record := range sent.GetTransactions() {
		item.Transactions = append(item.Transactions,
			Transaction{record.GetLine(), record.GetFields(), c.places})
	}
	go func() {
		defer stop()
		defer func() {
			if started.answer == nil { // by runtime.Goexit
				started.answer = &musterv1.HandlerAnswer{Item: item.Name}
				setOutcome(started.answer, errors.New("the work has ended its goroutine"))
			}
			select {
			case c.ended <- started:
			case <-c.stream.Context().Done():
			}
		}()
		started.answer = answer(ctx, c.work, item)
	}()
}

// finish sends the answer, if the processor waits for it. The same item may have come again since it was
// abandoned: that is another run.
func (c *call) finish(ended *run) error {
	if c.running[ended.item] != ended {
		return nil
	}
	delete(c.running, ended.item)
	return c.stream.Send(&musterv1.WorkResponse{
		Step: &musterv1.WorkResponse_Answer{Answer: ended.answer}})
}

func answer(ctx context.Context, work Work, item *Item) *musterv1.HandlerAnswer {
	results := newResults(item.Job, item.Transactions)
	told := &musterv1.HandlerAnswer{Item: item.Name}
	err := guarded(ctx, work, item, results)
	if err == nil {
		told.Outcome = &musterv1.HandlerAnswer_Ok{Ok: results.toProto()}
		if size := proto.Size(told); size > maxAnswerBytes {
			err = Dead(fmt.Sprintf("the results have %d bytes, more than a message may have", size))
		}
	}
	if err != nil {
		setOutcome(told, err)
	}
	return told
}

// guarded makes an error of a panic: only this item has failed, and others need not suffer for it.
func guarded(ctx context.Context, work Work, item *Item, results *Results) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("panic: %v", failure)
		}
	}()
	return work(ctx, item, results)
}

// outcomeIn is nil where there is none: an error may be a nil that panics when it is unwrapped.
func outcomeIn(err error) (meant *outcome) {
	defer func() { _ = recover() }()
	errors.As(err, &meant)
	return meant
}

func setOutcome(told *musterv1.HandlerAnswer, err error) {
	meant := outcomeIn(err)
	if meant == nil {
		slog.Error("muster: an item failed", "item", told.GetItem(), "error", err)
		meant = &outcome{kind: "retry", why: fmt.Sprint(err)} // an error may be a nil that panics
	}
	why := toWords(meant.why)
	if why == "" {
		why = "no reason given"
	}
	var after *durationpb.Duration
	if meant.after != 0 {
		after = durationpb.New(min(max(meant.after, 0), maxAfter))
	}
	switch meant.kind {
	case "dead":
		told.Outcome = &musterv1.HandlerAnswer_Dead{Dead: &musterv1.Dead{Why: why}}
	case "defer":
		told.Outcome = &musterv1.HandlerAnswer_Defer{Defer: &musterv1.Defer{After: after, Why: why}}
	default:
		told.Outcome = &musterv1.HandlerAnswer_Retry{Retry: &musterv1.Retry{After: after, Why: why}}
	}
}
