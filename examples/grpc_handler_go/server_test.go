package main

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/totals/musterv1"
)

// processor is the other side of one call.
type processor struct {
	t      *testing.T
	stream musterv1.HandlerService_WorkClient
	cancel context.CancelFunc
	server *server
}

// begin makes a call to a server that works so, up to its ready.
func begin(t *testing.T, work work) *processor {
	listener := bufconn.Listen(1 << 16)
	handler, transport := newServer(work), grpc.NewServer()
	musterv1.RegisterHandlerServiceServer(transport, handler)
	go transport.Serve(listener)
	t.Cleanup(transport.Stop)
	channel, err := grpc.NewClient("passthrough:there",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := musterv1.NewHandlerServiceClient(channel).Work(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := &processor{t, stream, cancel, handler}
	hello := &musterv1.Hello{ProtocolVersion: 1, Schema: &musterv1.JobSchema{Columns: columns}}
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Hello{Hello: hello}})
	if ready := p.hear().GetReady(); ready.GetVersion() != version || ready.GetConcurrency() != concurrency {
		t.Fatalf("not ready: %v", ready)
	}
	return p
}

func (p *processor) send(request *musterv1.WorkRequest) {
	p.t.Helper()
	if err := p.stream.Send(request); err != nil {
		p.t.Fatal(err)
	}
}

func (p *processor) handIn(name string) {
	item := itemOf(name, []string{"ada", "1"})
	item.Deadline = durationpb.New(time.Minute)
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Item{Item: item}})
}

func (p *processor) abandon(name string) {
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Abandon{Abandon: &musterv1.Abandon{Item: name}}})
}

func (p *processor) hear() *musterv1.WorkResponse {
	p.t.Helper()
	response, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

func (p *processor) expectAnswer(item string) {
	p.t.Helper()
	if answer := p.hear().GetAnswer(); answer.GetItem() != item || answer.GetOk() == nil {
		p.t.Fatalf("want an answer to %s, got %v", item, answer)
	}
}

// expectEnd wants the call to end with OK.
func (p *processor) expectEnd() {
	p.t.Helper()
	if response, err := p.stream.Recv(); !errors.Is(err, io.EOF) {
		p.t.Fatalf("want the call's end, got %v, %v", response, err)
	}
}

// slow is work that says when it begins, and ends when it is let go or stopped.
type slow struct {
	begun   chan string
	let     chan struct{}
	stopped chan string
}

func makeSlow() *slow {
	return &slow{begun: make(chan string, 10), let: make(chan struct{}, 10), stopped: make(chan string, 10)}
}

func (s *slow) work(ctx context.Context, item *musterv1.HandlerItem, columns []string) (*musterv1.HandlerAnswer, error) {
	s.begun <- item.Item
	select {
	case <-s.let:
		return total(ctx, item, columns)
	case <-ctx.Done():
		s.stopped <- item.Item
		return nil, ctx.Err()
	}
}

func TestWorksOnSeveralItemsAtATime(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	for _, item := range []string{"1/1", "1/2"} {
		p.handIn(item)
		<-work.begun
	}
	work.let <- struct{}{}
	work.let <- struct{}{}
	answered := map[string]bool{p.hear().GetAnswer().GetItem(): true, p.hear().GetAnswer().GetItem(): true}
	if !answered["1/1"] || !answered["1/2"] {
		t.Error(answered)
	}
}

func TestStopsWorkingOnWhatIsAbandoned(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	p.handIn("1/1")
	<-work.begun
	p.abandon("1/1")
	if item := <-work.stopped; item != "1/1" {
		t.Errorf("%s was stopped", item)
	}
	p.abandon("1/9") // what it does not have is passed over
	p.handIn("1/1")  // comes again
	<-work.begun
	work.let <- struct{}{}
	p.expectAnswer("1/1")
}

func TestStopsAtTheDeadline(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	item := itemOf("1/1")
	item.Deadline = durationpb.New(time.Millisecond)
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Item{Item: item}})
	<-work.stopped
}

func TestAnswersWhatItHasWhenTheProcessorLeaves(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	p.handIn("1/1")
	<-work.begun
	p.stream.CloseSend()
	work.let <- struct{}{}
	p.expectAnswer("1/1")
	p.expectEnd()
}

func TestAnswersWhatItHasAndTakesNothingNewWhenDrained(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	p.handIn("1/1")
	p.handIn("1/2")
	<-work.begun
	<-work.begun
	p.server.drain()
	p.abandon("1/1") // is heard all the same
	if item := <-work.stopped; item != "1/1" {
		t.Errorf("%s was stopped", item)
	}
	p.handIn("1/3")
	work.let <- struct{}{}
	p.expectAnswer("1/2")
	p.expectEnd()
	if len(work.begun) > 0 {
		t.Errorf("took %s", <-work.begun)
	}
}

func TestStopsWorkingWhenTheCallIsCancelled(t *testing.T) {
	work := makeSlow()
	p := begin(t, work.work)
	p.handIn("1/1")
	<-work.begun
	p.cancel()
	<-work.stopped
}
