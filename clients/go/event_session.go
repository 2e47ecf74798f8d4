// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

// eventHandlers are the user's; errors are told one at a time.
type eventHandlers struct {
	EventHandlers
	telling sync.Mutex
}

func (h *eventHandlers) tell(trouble ProcessorError) {
	if h.OnError != nil {
		h.telling.Lock()
		defer h.telling.Unlock()
		h.OnError(trouble)
	}
}

// guarded tells what call fails with, or panics with, and gives it in words; "": nothing.
func (h *eventHandlers) guarded(partition int32, call func() error) (words string) {
	defer func() {
		if failure := recover(); failure != nil {
			words = h.failed(partition, fmt.Errorf("panic: %v", failure))
		}
	}()
	if err := call(); err != nil {
		return h.failed(partition, err)
	}
	return ""
}

func (h *eventHandlers) failed(partition int32, err error) string {
	h.tell(ProcessorError{Partition: partition, Operation: "handle", Err: err})
	if words := toWords(fmt.Sprint(err)); words != "" { // an error may be a nil that panics
		return words
	}
	return "failed"
}

// eventSession is one call of ProcessEvents.
type eventSession struct {
	handlers *eventHandlers
	slots    chan struct{} // one for each partition at work
	working  sync.WaitGroup
	started  bool // of run's goroutine

	sending sync.Mutex // gRPC takes one message at a time
	call    musterv1.StreamService_ProcessEventsClient

	mu       sync.Mutex
	contexts map[int32]*PartitionContext
	// By partition, in the order in which they were sent, which is that of the answers; nil: the server is lost.
	saves map[int32][]chan error
}

func newEventSession(handlers *eventHandlers, concurrency int) *eventSession {
	return &eventSession{handlers: handlers, slots: make(chan struct{}, concurrency),
		contexts: map[int32]*PartitionContext{}, saves: map[int32][]chan error{}}
}

// run is over when the server has ended the session, which it does when ctx ends, or is lost; nil: it was told
// to end. All handlers have returned then.
func (s *eventSession) run(ctx context.Context, streams musterv1.StreamServiceClient,
	start *musterv1.ProcessEventsStart) error {
	calling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	// At the end: who waits for a checkpoint hears that the server is lost, and then the handlers' context ends.
	defer s.working.Wait()
	defer cancel()
	defer s.letGo()
	call, err := streams.ProcessEvents(calling)
	if err != nil {
		return err
	}
	s.call = call
	s.send(&musterv1.ProcessEventsRequest{Message: &musterv1.ProcessEventsRequest_Start{Start: start}})
	forget := context.AfterFunc(ctx, func() {
		s.send(&musterv1.ProcessEventsRequest{
			Message: &musterv1.ProcessEventsRequest_Stop{Stop: &musterv1.ProcessEventsStop{}}})
	})
	defer forget()
	for {
		response, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return unavailable("the server has ended the call")
		}
		if err != nil {
			return err
		}
		if ended := response.GetEnded(); ended != nil {
			return errorOf(ended.GetCode(), ended.GetMessage())
		}
		s.take(calling, response)
	}
}

// send: when it fails, Recv says why.
func (s *eventSession) send(request *musterv1.ProcessEventsRequest) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.call.Send(request)
}

// take passes over messages that it does not know.
func (s *eventSession) take(ctx context.Context, response *musterv1.ProcessEventsResponse) {
	switch message := response.GetMessage().(type) {
	case *musterv1.ProcessEventsResponse_Member:
		s.started = true
	case *musterv1.ProcessEventsResponse_Opened:
		s.open(message.Opened)
	case *musterv1.ProcessEventsResponse_Event:
		partition := message.Event.GetPartition()
		s.work(ctx, partition, func() error {
			return s.handlers.OnEvent(ctx, s.contextOf(partition), toEvent(message.Event.GetEvent()))
		})
	case *musterv1.ProcessEventsResponse_Closing:
		partition := message.Closing.GetPartition()
		s.work(ctx, partition, func() error {
			s.close(ctx, s.contextOf(partition), wordsOf(message.Closing.GetReason()))
			return nil
		})
	case *musterv1.ProcessEventsResponse_Saved:
		saved := message.Saved
		s.resolve(saved.GetPartition(), errorOf(saved.GetCode(), saved.GetMessage()))
	case *musterv1.ProcessEventsResponse_Error:
		told := message.Error
		if told.GetOperation() != "handle" { // those of this process have been told
			s.handlers.tell(ProcessorError{told.GetPartition(), told.GetOperation(),
				errorOf(told.GetCode(), told.GetMessage()), told.GetEventsLost()})
		}
	}
}

func (s *eventSession) open(opened *musterv1.PartitionOpened) {
	partition := &PartitionContext{opened.GetPartition(), opened.GetEpoch(), opened.GetBeginsAt(), s}
	s.mu.Lock()
	s.contexts[partition.Partition] = partition
	s.mu.Unlock()
	if s.handlers.OnPartitionInitializing != nil {
		s.handlers.guarded(partition.Partition, func() error {
			s.handlers.OnPartitionInitializing(partition)
			return nil
		})
	}
}

// close: what fails in it is told, and changes nothing.
func (s *eventSession) close(ctx context.Context, partition *PartitionContext, reason string) {
	if s.handlers.OnPartitionClosing != nil {
		s.handlers.guarded(partition.Partition, func() error {
			s.handlers.OnPartitionClosing(ctx, partition, reason)
			return nil
		})
	}
}

func (s *eventSession) contextOf(partition int32) *PartitionContext {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contexts[partition]
}

// work calls in a goroutine of its own, and answers when that is done; the server sends nothing more for
// the partition before. There are no more goroutines than partitions that this member owns.
func (s *eventSession) work(ctx context.Context, partition int32, call func() error) {
	s.working.Add(1)
	go func() {
		defer s.working.Done()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return // the server is lost, and hears no answer
		}
		why := "the handler has ended its goroutine" // by runtime.Goexit
		defer func() {
			s.send(&musterv1.ProcessEventsRequest{Message: &musterv1.ProcessEventsRequest_Handled{
				Handled: &musterv1.PartitionHandled{Partition: partition, Error: why}}})
		}()
		why = s.handlers.guarded(partition, call)
	}()
}

func (s *eventSession) save(ctx context.Context, partition int32, offset int64) error {
	saved := make(chan error, 1) // the answer finds room also when no one waits for it any more
	if !s.sendSave(partition, offset, saved) {
		return unavailable("the server is lost")
	}
	select {
	case err := <-saved:
		return err
	case <-ctx.Done():
		select { // the session's end, which is heard as well, says more
		case err := <-saved:
			return err
		default:
			return fromContext(ctx)
		}
	}
}

// sendSave is false when the server is lost.
func (s *eventSession) sendSave(partition int32, offset int64, saved chan error) bool {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	lost := s.saves == nil
	if !lost {
		s.saves[partition] = append(s.saves[partition], saved)
	}
	s.mu.Unlock()
	if !lost {
		_ = s.call.Send(&musterv1.ProcessEventsRequest{Message: &musterv1.ProcessEventsRequest_Checkpoint{
			Checkpoint: &musterv1.SaveCheckpoint{Partition: partition, Offset: offset}}})
	}
	return !lost
}

func (s *eventSession) resolve(partition int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.saves[partition]; len(waiting) > 0 {
		s.saves[partition] = waiting[1:]
		waiting[0] <- err
	}
}

// letGo ends the wait for checkpoints that no one saves any more.
func (s *eventSession) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.saves {
		for _, saved := range waiting {
			saved <- unavailable("the server is lost")
		}
	}
	s.saves = nil
}

func wordsOf(reason musterv1.PartitionCloseReason) string {
	name := strings.TrimPrefix(reason.String(), "PARTITION_CLOSE_REASON_")
	return strings.ToLower(strings.ReplaceAll(name, "_", " "))
}

// errorOf is nil for code 0.
func errorOf(code int32, message string) error {
	if code == 0 {
		return nil
	}
	return &Error{Code: codes.Code(code), Message: message}
}
