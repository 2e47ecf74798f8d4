package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/totals/musterv1"
)

// concurrency is how many items a processor may have here at a time.
const concurrency = 8

// work answers one item. It ends early when ctx does; whatever it returns then goes nowhere.
type work func(ctx context.Context, item *musterv1.HandlerItem, columns []string) (*musterv1.HandlerAnswer, error)

// server speaks the protocol; what is done with an item is work's.
type server struct {
	musterv1.UnimplementedHandlerServiceServer
	work     work
	draining chan struct{} // closed: take nothing more
}

func newServer(work work) *server {
	return &server{work: work, draining: make(chan struct{})}
}

// drain ends every call with OK as soon as the items in hand are answered. Once only.
func (s *server) drain() { close(s.draining) }

// Work is one call: one processor, as long as it works for the job.
func (s *server) Work(stream musterv1.HandlerService_WorkServer) error {
	columns, err := greet(stream)
	if err != nil {
		return err
	}
	c := &call{
		stream:  stream,
		columns: columns,
		work:    s.work,
		running: map[string]*run{},
		ended:   make(chan *run),
	}
	return c.serve(s.draining)
}

// greet hears hello, says ready, and gives the columns of the job.
func greet(stream musterv1.HandlerService_WorkServer) ([]string, error) {
	request, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	hello := request.GetHello()
	columns := hello.GetSchema().GetColumns()
	if hello.GetProtocolVersion() != 1 || !canWorkOn(columns) {
		return nil, status.Error(codes.FailedPrecondition,
			"this server speaks version 1, of jobs with customer and amount")
	}
	ready := &musterv1.Ready{Name: "totals", Version: version, Concurrency: concurrency}
	return columns, stream.Send(&musterv1.WorkResponse{Step: &musterv1.WorkResponse_Ready{Ready: ready}})
}

// run is an item in work.
type run struct {
	item   string
	stop   context.CancelFunc
	answer *musterv1.HandlerAnswer
	err    error
}

// received is what the stream gave: a request, or why there will be no more.
type received struct {
	request *musterv1.WorkRequest
	err     error
}

// call belongs to the goroutine of serve, but for what runs hand over when they have ended.
type call struct {
	stream  musterv1.HandlerService_WorkServer
	columns []string
	work    work
	running map[string]*run // by the item's name; without those that were abandoned
	ended   chan *run
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
		}
	}
	return nil
}

func isClosed(draining <-chan struct{}) bool {
	select {
	case <-draining:
		return true
	default:
		return false
	}
}

// receive gives what the processor says; its error is the last. The stream's context ends when
// serve returns, and with it everything that still waits for serve.
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

// take passes over steps that it does not know. An item that comes when the call is about to end
// has no answer, and goes elsewhere at no cost.
func (c *call) take(request *musterv1.WorkRequest, leaving bool) {
	switch step := request.Step.(type) {
	case *musterv1.WorkRequest_Item:
		if !leaving {
			c.start(step.Item)
		}
	case *musterv1.WorkRequest_Abandon:
		if abandoned := c.running[step.Abandon.Item]; abandoned != nil {
			abandoned.stop()
			delete(c.running, abandoned.item)
		}
	}
}

func (c *call) start(item *musterv1.HandlerItem) {
	ctx, stop := context.WithTimeout(c.stream.Context(), item.Deadline.AsDuration())
	started := &run{item: item.Item, stop: stop}
	c.running[item.Item] = started
	go func() {
		defer stop()
		started.answer, started.err = c.work(ctx, item, c.columns)
		select {
		case c.ended <- started:
		case <-c.stream.Context().Done():
		}
	}()
}

// finish sends the answer, if anybody waits for it. The same item may have come again since it was
// abandoned: that is another run.
func (c *call) finish(ended *run) error {
	if c.running[ended.item] != ended {
		return nil
	}
	delete(c.running, ended.item)
	if ended.err != nil {
		return nil // its time is over, and at the deadline the processor cancels the call
	}
	return c.stream.Send(&musterv1.WorkResponse{Step: &musterv1.WorkResponse_Answer{Answer: ended.answer}})
}
