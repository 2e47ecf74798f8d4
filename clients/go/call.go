// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"fmt"
	"time"

	"muster.example/muster/internal/musterv1"
)

// Record is one record for a job: a line of its input format without a header, or texts by the names of
// its columns.
type Record struct {
	Line   string
	Fields map[string]string
	// With an id the call has a batch of its own, which the same id finds again: it counts once however
	// often it is tried, and is tried again while no server answers. Empty: it is tried once.
	RequestID string
}

// Answer is what a job made of a record, which is counted at Line of Batch. Outputs are the values of the
// records that the handler returned for it.
type Answer struct {
	Batch   uint64
	Line    int64
	Outputs []Values
}

// NotAccepted is the error of a call whose record is counted, and was rejected by the handler or, if
// DeadLettered, given up.
type NotAccepted struct {
	Batch        uint64
	Line         int64
	Reason       string
	DeadLettered bool
}

func (e *NotAccepted) Error() string {
	what := "rejected"
	if e.DeadLettered {
		what = "dead-lettered"
	}
	return fmt.Sprintf("muster: line %d of batch %d is %s: %s", e.Line, e.Batch, what, e.Reason)
}

// Call submits one record, waits until it is counted, and gives what the handler returned for it.
// Records of calls at a time share a batch. The error is a *NotAccepted, or an *Error as
// CallService.Call has it: after one that is none of InvalidArgument, NotFound and ResourceExhausted,
// the record may be counted all the same.
func (c *Client) Call(ctx context.Context, job string, record Record) (*Answer, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	request := &musterv1.CallRequest{Job: job, Record: []byte(record.Line), Fields: record.Fields,
		RequestId: []byte(record.RequestID)}
	deadline, _ := ctx.Deadline()
	patience := c.patience(time.Until(deadline))
	for {
		response, err := c.calls.Call(ctx, request)
		if err == nil {
			return toAnswer(response)
		}
		trouble := fromRPC(err)
		if record.RequestID == "" {
			return nil, trouble
		}
		if err := patience.waitAfter(ctx, trouble, "the call"); err != nil {
			return nil, err
		}
	}
}

func toAnswer(response *musterv1.CallResponse) (*Answer, error) {
	if rejected := response.GetRejected(); rejected != nil {
		return nil, &NotAccepted{response.GetBatch(), response.GetLine(), rejected.GetReason(), false}
	}
	if dead := response.GetDeadLettered(); dead != nil {
		return nil, &NotAccepted{response.GetBatch(), response.GetLine(), dead.GetCause(), true}
	}
	answer := &Answer{Batch: response.GetBatch(), Line: response.GetLine()}
	columns := toColumns(response.GetAccepted().GetColumns())
	for _, told := range response.GetAccepted().GetRecords() {
		record, err := toRecord(columns, told)
		if err != nil {
			return nil, err
		}
		answer.Outputs = append(answer.Outputs, record.Values)
	}
	return answer, nil
}
