// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

func newMember(t *testing.T, server string) *EventProcessor {
	t.Helper()
	made, err := NewEventProcessor(server, "homes", "store", EventProcessorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

func expectClosed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrClosed) {
		t.Errorf("error: %v", err)
	}
}

func TestClosingAProcessorEndsItsRunAndTheContextOfItsHandlers(t *testing.T) {
	fake, _ := startFake(t)
	member := newMember(t, fake.reports.address)
	var told []error
	begun := make(chan struct{})
	handled := make(chan error, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- member.Run(t.Context(), EventHandlers{
			OnEvent: func(ctx context.Context, _ *PartitionContext, _ Event) error {
				close(begun)
				<-ctx.Done()
				handled <- ctx.Err()
				return nil
			},
			OnError: func(trouble ProcessorError) { told = append(told, trouble) },
		})
	}()
	<-begun
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	expectClosed(t, <-ended)
	if err := <-handled; err == nil || len(told) != 0 {
		t.Errorf("the handler's context: %v; told: %v", err, told)
	}
	expectClosed(t, member.Run(t.Context(), EventHandlers{}))
}

func TestClosingAProcessorEndsARunThatWaitsForALostServer(t *testing.T) {
	member := newMember(t, "127.0.0.1:1")
	lost := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- member.Run(t.Context(), EventHandlers{OnError: func(ProcessorError) { lost <- struct{}{} }})
	}()
	<-lost
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	expectClosed(t, <-ended)
}

// expectTold has a processor handle an event so, and looks what its server is told of it.
func expectTold(t *testing.T, want string, handle func() error) {
	t.Helper()
	fake, _ := startFake(t)
	fake.events.answers = make(chan string, 1)
	member := newMember(t, fake.reports.address)
	ended := make(chan error, 1)
	go func() {
		ended <- member.Run(t.Context(), EventHandlers{
			OnEvent: func(context.Context, *PartitionContext, Event) error { return handle() },
		})
	}()
	select {
	case told := <-fake.events.answers:
		if told != want {
			t.Errorf("told: %q", told)
		}
	case err := <-ended:
		t.Fatalf("the run has ended: %v", err)
	}
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	expectClosed(t, <-ended)
}

// gRPC would end the call, and the processor with it.
func TestAnErrorThatIsNoTextEndsNoSession(t *testing.T) {
	expectTold(t, "\uFFFD", func() error { return errors.New("\xc3") })
}

func TestAnEventIsAnsweredWhoseHandlerEndsItsGoroutine(t *testing.T) {
	expectTold(t, "the handler has ended its goroutine", func() error {
		runtime.Goexit()
		return nil
	})
}

func TestAnErrorThatIsANilIsAnswered(t *testing.T) {
	expectTold(t, "<nil>", func() error {
		var broken *brokenError
		return broken
	})
}
