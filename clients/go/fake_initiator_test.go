// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/muster/internal/musterv1"
)

// fakeInitiator does what a test tells it, for what a real one does only in bad moments. It keeps one
// upload.
type fakeInitiator struct {
	musterv1.UnimplementedBatchServiceServer
	mu       sync.Mutex
	content  []byte
	batch    uint64
	breaks   []func(there int) error // the first stream breaks as the first says, and so on
	refuses  error                   // what each submit is answered with
	late     bool                    // accepts only when something was sent behind the header
	headers  []*musterv1.SubmitHeader
	received int
	unsealed error         // what each seal is answered with
	watches  [][]uint64    // revisions; each call takes one, and breaks unless it is the last
	watched  []uint64      // the revisions that the calls knew
	fails    error         // what GetBatch is answered with
	slow     time.Duration // what GetBatch takes
	retries  []any         // what each RetryRejections is answered with: a response, or an error
	retried  []*musterv1.RetryRejectionsRequest
	records  int // calls of ReadRecords, each of which is answered with one record
	reports  fakeReports
	events   fakeStreams
}

// startFake gives a client of it, too.
func startFake(t *testing.T) (*fakeInitiator, *Client) {
	t.Helper()
	fake := &fakeInitiator{batch: 7}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	fake.reports.address = listener.Addr().String()
	musterv1.RegisterBatchServiceServer(server, fake)
	musterv1.RegisterMeshServiceServer(server, &fake.reports)
	musterv1.RegisterReportServiceServer(server, &fake.reports)
	musterv1.RegisterStreamServiceServer(server, &fake.events)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return fake, connect(t, listener.Addr().String(), Options{Patience: 20 * time.Second})
}

func connect(t *testing.T, address string, options Options) *Client {
	t.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	client, err := NewClient(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (f *fakeInitiator) Submit(stream musterv1.BatchService_SubmitServer) error {
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	breaks := f.begin(request.GetHeader())
	if f.refuses != nil {
		return f.refuses
	}
	if f.late {
		if request, err = stream.Recv(); err != nil {
			return err
		}
	}
	err = stream.Send(&musterv1.SubmitResponse{Step: &musterv1.SubmitResponse_Accepted{
		Accepted: &musterv1.SubmitAccepted{Batch: f.batch, DurableOffset: uint64(len(f.content))}}})
	for err == nil {
		if !f.late {
			if request, err = stream.Recv(); err != nil {
				return err
			}
		}
		f.late = false
		if request.GetSeal() != nil {
			return f.seal(stream, request.GetSeal())
		}
		err = f.take(stream, request.GetChunk(), breaks)
	}
	return err
}

func (f *fakeInitiator) begin(header *musterv1.SubmitHeader) func(int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.headers = append(f.headers, header)
	if len(f.breaks) == 0 {
		return func(int) error { return nil }
	}
	breaks := f.breaks[0]
	f.breaks = f.breaks[1:]
	return breaks
}

func (f *fakeInitiator) take(stream musterv1.BatchService_SubmitServer, chunk *musterv1.SubmitChunk,
	breaks func(int) error) error {
	if chunk.GetOffset() != uint64(len(f.content)) {
		return status.Error(codes.OutOfRange, "a gap")
	}
	f.content = append(f.content, chunk.GetData()...)
	f.received++
	err := stream.Send(&musterv1.SubmitResponse{Step: &musterv1.SubmitResponse_Durable{
		Durable: &musterv1.SubmitDurable{DurableOffset: uint64(len(f.content))}}})
	return errors.Join(err, breaks(len(f.content)))
}

func (f *fakeInitiator) seal(stream musterv1.BatchService_SubmitServer, seal *musterv1.SubmitSeal) error {
	if f.unsealed != nil {
		return f.unsealed
	}
	whole := xxh3.Hash128(f.content).Bytes()
	if seal.GetSize() != uint64(len(f.content)) || string(seal.GetContentHash()) != string(whole[:]) {
		return status.Error(codes.DataLoss, "another hash")
	}
	return stream.Send(&musterv1.SubmitResponse{Step: &musterv1.SubmitResponse_Sealed{
		Sealed: &musterv1.SubmitSealed{Status: &musterv1.BatchStatus{Batch: f.batch}}}})
}

func (f *fakeInitiator) WatchBatch(request *musterv1.WatchBatchRequest,
	stream musterv1.BatchService_WatchBatchServer) error {
	f.mu.Lock()
	f.watched = append(f.watched, request.GetAfterRevision())
	revisions := f.watches[0]
	f.watches = f.watches[1:]
	last := len(f.watches) == 0
	f.mu.Unlock()
	state := musterv1.BatchState_BATCH_STATE_SEALED
	if last {
		state = musterv1.BatchState_BATCH_STATE_COMPLETE
	}
	for _, revision := range revisions {
		if err := stream.Send(&musterv1.WatchBatchResponse{Status: &musterv1.BatchStatus{
			Batch: request.GetBatch(), Revision: revision, Complete: last, State: state}}); err != nil {
			return err
		}
	}
	if last {
		return nil
	}
	return status.Error(codes.Unavailable, "about to stop")
}

func (f *fakeInitiator) GetBatch(context.Context, *musterv1.GetBatchRequest) (*musterv1.GetBatchResponse, error) {
	time.Sleep(f.slow)
	return nil, f.fails
}

func (f *fakeInitiator) RetryRejections(_ context.Context, request *musterv1.RetryRejectionsRequest) (
	*musterv1.RetryRejectionsResponse, error) {
	f.retried = append(f.retried, request)
	answer := f.retries[0]
	f.retries = f.retries[1:]
	if err, fails := answer.(error); fails {
		return nil, err
	}
	return answer.(*musterv1.RetryRejectionsResponse), nil
}

// ReadRecords answers the first that is asked for: a message has no room for more.
func (f *fakeInitiator) ReadRecords(_ context.Context, request *musterv1.ReadRecordsRequest) (
	*musterv1.ReadRecordsResponse, error) {
	f.records++
	lines := 0
	for _, item := range request.GetItems() {
		lines += len(item.GetLines())
	}
	first := request.GetItems()[0]
	return &musterv1.ReadRecordsResponse{More: lines > 1, Records: []*musterv1.SubmittedRecord{
		{Item: first.GetItem(), Line: first.GetLines()[0], Record: fmt.Append(nil, "record ", first.GetLines()[0])}}}, nil
}

func breakOff(int) error { return status.Error(codes.Unavailable, "the connection broke") }

func breakAt(size int) func(int) error {
	return func(there int) error {
		if there >= size {
			return breakOff(there)
		}
		return nil
	}
}

// onlyOnce hides that a reader can seek.
type onlyOnce struct{ io.Reader }
