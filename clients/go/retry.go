// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

const (
	// What one call may name.
	retriedLines = 1000
	// Of one call: an initiator reads all items that have one of up to 50,000 rejections.
	retryTimeout = 10 * time.Minute
)

// RetriedBatch is a batch that retries transactions which another one rejected, or gave up.
type RetriedBatch struct {
	Batch        uint64
	Transactions int64 // that it has of the other one
	IsNew        bool  // it was submitted by this call
}

// RetryRejections submits what a complete batch rejected once more, as new batches of its job: the records
// that begin at lines. Each is retried once: a second call with the same lines gives the batch that has them
// already.
//
// NotFound: no such batch, or it rejected nothing at a line. FailedPrecondition: the batch is not complete, its
// content is deleted, or nothing is left to retry. Unavailable, ResourceExhausted: call again, and it goes on.
// The error's Retried are the batches that were there before it.
func (c *Client) RetryRejections(ctx context.Context, batch uint64, lines []int64) ([]RetriedBatch, error) {
	if len(lines) == 0 {
		return nil, &Error{Code: codes.InvalidArgument, Message: "no line to retry; RetryAllRejections retries all"}
	}
	var retried []RetriedBatch
	for len(lines) > 0 {
		named := lines[:min(len(lines), retriedLines)]
		lines = lines[len(named):]
		if _, err := c.retry(ctx, &musterv1.RetryRejectionsRequest{Batch: batch, Lines: named}, &retried); err != nil {
			return nil, err
		}
	}
	return retried, nil
}

// RetryAllRejections does so with all that was not retried yet, also items that were given up as wholes, 50,000
// transactions in a batch.
func (c *Client) RetryAllRejections(ctx context.Context, batch uint64) ([]RetriedBatch, error) {
	var retried []RetriedBatch
	for {
		more, err := c.retry(ctx, &musterv1.RetryRejectionsRequest{Batch: batch, All: true}, &retried)
		if err != nil {
			return nil, err
		}
		if !more {
			return retried, nil
		}
	}
}

// retry adds what one call has retried, and says whether more is left.
func (c *Client) retry(ctx context.Context, request *musterv1.RetryRejectionsRequest, retried *[]RetriedBatch) (bool, error) {
	ctx, cancel := within(ctx, retryTimeout)
	defer cancel()
	response, err := c.batches.RetryRejections(ctx, request)
	if err != nil {
		failure := fromRPC(err)
		failure.Retried = *retried
		return false, failure
	}
	for _, batch := range response.GetRetries() {
		*retried = append(*retried, RetriedBatch{batch.GetBatch(), batch.GetTransactions(), batch.GetIsNew()})
	}
	return response.GetMore(), nil
}
