// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"muster.example/muster/internal/musterv1"
)

// aheadBytes: the server stops reading when a client runs further ahead of what is durable.
const aheadBytes = 8 << 20

// SubmitProgress is how much of an upload the initiator has on its disk, and need not be sent again.
type SubmitProgress struct {
	Batch   uint64
	Durable uint64
	Size    uint64 // of the content; 0: not known yet
}

// upload is all streams that it takes to get a batch across.
type upload struct {
	content  *keptContent
	header   *musterv1.SubmitHeader
	size     uint64
	progress func(SubmitProgress)
	batch    uint64 // 0: none was heard of
	durable  uint64 // at most, so far
	news     bool
}

func (u *upload) run(ctx context.Context, stub musterv1.BatchServiceClient,
	patience *patience) (*musterv1.BatchStatus, error) {
	// Most batches are new. Of one that is not, the initiator says so, and is then asked first.
	for atOnce := true; ; atOnce = false {
		u.news = false
		sealed, err := u.stream(ctx, stub, atOnce)
		if err == nil && sealed != nil {
			return sealed, nil
		}
		if err == nil {
			err = unavailable("the initiator ended the upload early")
		}
		if cause, is := isUnreadable(err); is {
			return nil, cause
		}
		trouble := fromRPC(err)
		if atOnce && trouble.Code == codes.OutOfRange {
			continue
		}
		if u.news {
			patience.refresh()
		}
		if err := patience.waitAfter(ctx, trouble, "the upload"); err != nil {
			return nil, err
		}
	}
}

// stream is one call of BatchService.Submit. It gives what the seal was answered with; nil: the server
// has ended the stream without.
func (u *upload) stream(ctx context.Context, stub musterv1.BatchServiceClient,
	atOnce bool) (*musterv1.BatchStatus, error) {
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	call, err := stub.Submit(calling)
	if err != nil {
		return nil, err
	}
	sender := newSender(u.content, u.header, call)
	sent := make(chan error, 1)
	go func() {
		err := sender.run(atOnce)
		if err != nil {
			cancel() // the receiver hears of it
		}
		sent <- err
	}()
	sealed, err := u.hear(call, sender)
	sender.end()
	cancel()
	select {
	case unsent := <-sent:
		if unsent != nil {
			return nil, unsent
		}
	case <-ctx.Done(): // the content's reader may be slow to give anything
	}
	return sealed, err
}

func (u *upload) hear(call musterv1.BatchService_SubmitClient, sender *sender) (*musterv1.BatchStatus, error) {
	var sealed *musterv1.BatchStatus
	for {
		response, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return sealed, nil
		}
		if err != nil {
			return nil, err
		}
		switch step := response.Step.(type) {
		case *musterv1.SubmitResponse_Accepted:
			err = u.onDurable(step.Accepted.GetBatch(), step.Accepted.GetDurableOffset())
			sender.hear(step.Accepted.GetDurableOffset(), true)
		case *musterv1.SubmitResponse_Durable:
			err = u.onDurable(u.batch, step.Durable.GetDurableOffset())
			sender.hear(step.Durable.GetDurableOffset(), false)
		case *musterv1.SubmitResponse_Sealed:
			sealed = step.Sealed.GetStatus()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (u *upload) onDurable(batch, durable uint64) error {
	// A batch that was cancelled meanwhile is not begun anew behind its submitter's back.
	if u.batch != 0 && u.batch != batch {
		return &Error{Code: codes.Canceled, Reason: "BATCH_CANCELLED",
			Message: fmt.Sprintf("batch %d was cancelled", u.batch)}
	}
	// Not that the header is accepted once more: what comes behind it may fail each time.
	u.news = u.news || u.batch == 0 || durable > u.durable
	u.batch = batch
	u.durable = max(u.durable, durable)
	u.content.forget(durable)
	if u.progress != nil {
		u.progress(SubmitProgress{batch, durable, u.size})
	}
	return nil
}

// sender sends a stream's requests, in a goroutine of its own.
type sender struct {
	content *keptContent
	header  *musterv1.SubmitHeader
	call    musterv1.BatchService_SubmitClient

	mu         sync.Mutex
	changed    *sync.Cond
	accepted   bool
	acceptedAt uint64
	durable    uint64
	ended      bool
}

func newSender(content *keptContent, header *musterv1.SubmitHeader,
	call musterv1.BatchService_SubmitClient) *sender {
	s := &sender{content: content, header: header, call: call}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *sender) hear(durable uint64, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if accepted {
		s.accepted, s.acceptedAt = true, durable
	}
	s.durable = max(s.durable, durable)
	s.changed.Broadcast()
}

func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.changed.Broadcast()
}

// run gives what the content fails with. What the call fails with, its receiver hears.
func (s *sender) run(atOnce bool) error {
	header := proto.CloneOf(s.header)
	var sole []byte
	isSole := false
	if atOnce { // before anything is heard: what is durable elsewhere is not kept here
		var err error
		if sole, isSole, err = s.content.soleChunk(); err != nil {
			return err
		}
	}
	header.AtOnce = isSole && len(sole) > 0
	if !s.send(&musterv1.SubmitRequest{Step: &musterv1.SubmitRequest_Header{Header: header}}) {
		return nil
	}
	if isSole {
		if len(sole) == 0 || s.sendChunk(0, sole) {
			s.seal()
		}
		return nil
	}
	for offset, more := s.awaitAccepted(); more; more = s.awaitRoom(offset) {
		data, err := s.content.take(offset)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			s.seal()
			return nil
		}
		if !s.sendChunk(offset, data) {
			return nil
		}
		offset += uint64(len(data))
	}
	return nil
}

func (s *sender) send(request *musterv1.SubmitRequest) bool { return s.call.Send(request) == nil }

func (s *sender) sendChunk(offset uint64, data []byte) bool {
	return s.send(&musterv1.SubmitRequest{Step: &musterv1.SubmitRequest_Chunk{
		Chunk: &musterv1.SubmitChunk{Offset: offset, Data: data}}})
}

func (s *sender) seal() {
	if s.send(&musterv1.SubmitRequest{Step: &musterv1.SubmitRequest_Seal{
		Seal: &musterv1.SubmitSeal{Size: s.content.size(), ContentHash: s.content.digest()}}}) {
		_ = s.call.CloseSend() // what has failed, the receiver hears
	}
}

func (s *sender) awaitAccepted() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && !s.accepted {
		s.changed.Wait()
	}
	return s.acceptedAt, !s.ended
}

// awaitRoom gives false when the stream has ended.
func (s *sender) awaitRoom(sent uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && sent >= s.durable+aheadBytes {
		s.changed.Wait()
	}
	return !s.ended
}
