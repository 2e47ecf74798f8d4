// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const errorDomain = "muster"

// FieldViolation is what is wrong with a field of a request.
type FieldViolation struct {
	Field       string // its path, such as "header.request_id"
	Description string
}

// JobProblem is a mistake in a job's definition; line and column begin at 1.
type JobProblem struct {
	Line, Column int
	Message      string
}

func (p JobProblem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Error is what every call of a Client fails with, but for content that cannot be read. Its code is also
// what status.Code of grpc says; docs/api.md says which code comes when. errors.Is finds
// context.DeadlineExceeded in one that ran out of time.
type Error struct {
	Code    codes.Code
	Message string

	// What the server said for programs.
	Violations []FieldViolation  // which fields of the request are refused, and why
	RetryAfter time.Duration     // wait at least so long before the next try; 0: not said
	Reason     string            // such as "NO_SUCH_JOB"
	Facts      map[string]string // what goes with the reason

	Problems []JobProblem   // of a job that ApplyJob has refused
	Retried  []RetriedBatch // what RetryRejections or RetryAllRejections had retried when it failed
}

func (e *Error) Error() string { return fmt.Sprintf("muster: %s: %s", e.Code, e.Message) }

// GRPCStatus has status.Code and status.FromError of grpc understand the error.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// Is says that a call which ran out of time is a context.DeadlineExceeded, and one that its caller
// cancelled a context.Canceled.
func (e *Error) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return e.Code == codes.DeadlineExceeded
	case context.Canceled:
		return e.Code == codes.Canceled && e.Reason == ""
	}
	return false
}

// fromRPC gives the Error of a call that has ended with err, which is not nil.
func fromRPC(err error) *Error {
	if known, ok := err.(*Error); ok {
		return known
	}
	said := status.Convert(err)
	failure := &Error{Code: said.Code(), Message: said.Message()}
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, found := range detail.FieldViolations {
				failure.Violations = append(failure.Violations,
					FieldViolation{found.Field, found.Description})
			}
		case *errdetails.RetryInfo:
			failure.RetryAfter = detail.GetRetryDelay().AsDuration()
		case *errdetails.ErrorInfo:
			if detail.Domain == errorDomain {
				failure.Reason, failure.Facts = detail.Reason, detail.Metadata
			}
		}
	}
	return failure
}

// fromContext gives the Error of a wait that ended with its context.
func fromContext(ctx context.Context) *Error {
	if ctx.Err() == context.DeadlineExceeded {
		return &Error{Code: codes.DeadlineExceeded, Message: "the time to wait is over"}
	}
	return &Error{Code: codes.Canceled, Message: "the caller has cancelled"}
}

// ErrClosed is the error of the Run of an EventProcessor that is closed, and of what waits to be tried again when
// its Client is. Any other call that is under way then ends with codes.Canceled.
var ErrClosed error = &Error{Code: codes.Canceled, Message: "closed by its own program"}

func unavailable(message string) *Error { return &Error{Code: codes.Unavailable, Message: message} }
