// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	minWait = 100 * time.Millisecond
	maxWait = 2 * time.Second
)

// patience says how long a call that can be gone on with goes on trying while no server answers. Not for
// several goroutines.
type patience struct {
	limit    time.Duration
	log      *slog.Logger
	closed   <-chan struct{} // ends the wait when it is closed; nil: it never is
	failures int
	began    time.Time
}

// mayPass: a server that ends cancels what still runs there, and then gives no reason.
func mayPass(trouble *Error) bool {
	return trouble.Code == codes.Unavailable || trouble.Code == codes.Canceled && trouble.Reason == ""
}

// within is ctx with its own deadline, or, if it has none, with one that is limit from now on.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// refresh: there was news, so trouble begins anew after it.
func (p *patience) refresh() { p.failures = 0 }

// waitAfter waits a while before the next try of what. An error is what will not pass, or has lasted
// too long, or the end of ctx or of the client.
func (p *patience) waitAfter(ctx context.Context, trouble *Error, what string) error {
	if ctx.Err() != nil {
		return fromContext(ctx)
	}
	if isClosed(p.closed) {
		return ErrClosed
	}
	now := time.Now()
	if p.failures == 0 {
		p.began = now
	}
	if !mayPass(trouble) || now.Sub(p.began) > p.limit {
		return trouble
	}
	if p.failures == 0 {
		p.log.Warn("muster: "+what+" goes on when the server answers", "error", trouble)
	}
	wait := min(minWait<<min(p.failures, 10), maxWait)
	p.failures++
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return fromContext(ctx)
	}
}
