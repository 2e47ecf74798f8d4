// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

// Rejections are asked for a thousand at a time, which is what the report answers at most; a dead letter has
// many transactions.
const (
	rejectionsPage  = 1000
	deadLettersPage = 100
)

// noRecords are the codes for which records cannot be read, though the report says of which transactions;
// an initiator of an older muster does not know the call.
var noRecords = []codes.Code{codes.FailedPrecondition, codes.NotFound, codes.DataLoss,
	codes.PermissionDenied, codes.Unimplemented}

// FailedTransaction is a transaction that a batch rejected, or one of an item that was given up.
type FailedTransaction struct {
	Item   uint64 // index of its work item
	Line   int64  // of the input, from 1; 0: all of the item, whose content is deleted
	Reason string
	Record []byte // as it was submitted; nil: it is not there any more, or too long

	RetriedIn   uint64 // the batch that retries it; 0: none
	RetryOfLine int64  // of a batch that is a retry: its line in the batch that it retries; 0: none
}

// Rejections gives the transactions of a batch that were rejected, in the order of item and line, with their
// records, asked for page by page: at most 3 MiB of rows, and as many of records, are kept at a time.
//
// NotFound: no such batch. Unavailable: no controller is there.
func (c *Client) Rejections(ctx context.Context, batch uint64) iter.Seq2[FailedTransaction, error] {
	return c.failures(ctx, batch, (*failureReader).rejections)
}

// DeadLetters gives the transactions of items that were given up, likewise; the reason is what gave up the
// item.
func (c *Client) DeadLetters(ctx context.Context, batch uint64) iter.Seq2[FailedTransaction, error] {
	return c.failures(ctx, batch, (*failureReader).deadLetters)
}

// failureReader reads one batch. Its methods fail with what a call has failed with.
type failureReader struct {
	client     *Client
	stub       musterv1.ReportServiceClient
	batch      uint64
	hasRecords bool
	yield      func(FailedTransaction, error) bool
}

func (c *Client) failures(ctx context.Context, batch uint64,
	read func(*failureReader, context.Context) error) iter.Seq2[FailedTransaction, error] {
	return func(yield func(FailedTransaction, error) bool) {
		err := c.atController(ctx, c.patience(c.options.Timeout), func(stub musterv1.ReportServiceClient) error {
			return read(&failureReader{c, stub, batch, true, yield}, ctx)
		})
		if err != nil {
			yield(FailedTransaction{}, fromRPC(err))
		}
	}
}

func (r *failureReader) rejections(ctx context.Context) error {
	request := &musterv1.ListRejectionsRequest{Batch: r.batch, Max: rejectionsPage}
	for {
		asking, cancel := within(ctx, r.client.options.Timeout)
		response, err := r.stub.ListRejections(asking, request)
		cancel()
		page := response.GetRejections()
		if err != nil || len(page) == 0 {
			return err
		}
		last := page[len(page)-1]
		request.After = &musterv1.RejectionPosition{Item: last.GetItem(), Line: last.GetLine()}
		for len(page) > 0 {
			records, count, err := r.recordsOf(ctx, page)
			if err != nil {
				return err
			}
			for _, told := range page[:count] {
				record := records[place{told.GetItem(), told.GetLine()}]
				if !r.yield(FailedTransaction{told.GetItem(), told.GetLine(), told.GetReason(), record,
					told.GetRetriedIn(), told.GetRetryOfLine()}, nil) {
					return nil
				}
			}
			page = page[count:]
		}
	}
}

func (r *failureReader) deadLetters(ctx context.Context) error {
	request := &musterv1.ListDeadLettersRequest{Batch: r.batch, Max: deadLettersPage}
	for {
		asking, cancel := within(ctx, r.client.options.Timeout)
		response, err := r.stub.ListDeadLetters(asking, request)
		cancel()
		if err != nil || len(response.GetItems()) == 0 {
			return err
		}
		for _, item := range response.GetItems() {
			if wanted, err := r.transactionsOf(ctx, item); err != nil || !wanted {
				return err
			}
			request.From = item.GetItem() + 1
		}
	}
}

// transactionsOf gives those of an item, and whether more is wanted.
func (r *failureReader) transactionsOf(ctx context.Context, item *musterv1.DeadLetter) (bool, error) {
	wanted := &musterv1.ItemLines{Item: item.GetItem()}
	for {
		response, err := r.read(ctx, []*musterv1.ItemLines{wanted})
		if err != nil {
			return false, err
		}
		if response == nil {
			return r.yield(FailedTransaction{Item: item.GetItem(), Reason: item.GetCause(),
				RetriedIn: item.GetRetriedIn()}, nil), nil
		}
		for _, record := range response.GetRecords() {
			failed := FailedTransaction{Item: item.GetItem(), Line: record.GetLine(), Reason: item.GetCause(),
				Record: bytesOf(record), RetriedIn: item.GetRetriedIn()}
			if !r.yield(failed, nil) {
				return false, nil
			}
			wanted.AfterLine = record.GetLine()
		}
		if !response.GetMore() {
			return true, nil
		}
	}
}

// place tells a transaction of a batch from others.
type place struct {
	item uint64
	line int64
}

// recordsOf gives the records of the first rows, as many as fit into a message, and how many rows these are. They
// come in the order of the rows.
func (r *failureReader) recordsOf(ctx context.Context, rows []*musterv1.RejectedTransaction) (map[place][]byte, int, error) {
	var wanted []*musterv1.ItemLines
	for _, told := range rows {
		if len(wanted) == 0 || wanted[len(wanted)-1].Item != told.GetItem() {
			wanted = append(wanted, &musterv1.ItemLines{Item: told.GetItem()})
		}
		last := wanted[len(wanted)-1]
		last.Lines = append(last.Lines, told.GetLine())
	}
	response, err := r.read(ctx, wanted)
	if err != nil || response == nil {
		return nil, len(rows), err
	}
	records := map[place][]byte{}
	for _, record := range response.GetRecords() {
		records[place{record.GetItem(), record.GetLine()}] = bytesOf(record)
	}
	count := len(rows)
	for response.GetMore() {
		if count == 0 {
			return nil, 0, &Error{Code: codes.Internal, Message: "the server answers other records than it was asked for"}
		}
		if _, read := records[place{rows[count-1].GetItem(), rows[count-1].GetLine()}]; read {
			break
		}
		count--
	}
	return records, count, nil
}

// read gives nil where records cannot be read; it does not ask again then.
func (r *failureReader) read(ctx context.Context, items []*musterv1.ItemLines) (*musterv1.ReadRecordsResponse, error) {
	if !r.hasRecords {
		return nil, nil
	}
	asking, cancel := within(ctx, r.client.options.Timeout)
	defer cancel()
	response, err := r.client.batches.ReadRecords(asking, &musterv1.ReadRecordsRequest{Batch: r.batch, Items: items})
	if err != nil && slices.Contains(noRecords, fromRPC(err).Code) {
		r.hasRecords = false
		return nil, nil
	}
	return response, err
}

func bytesOf(record *musterv1.SubmittedRecord) []byte {
	if record.GetOversized() {
		return nil
	}
	return append([]byte{}, record.GetRecord()...) // an empty one is not nil
}
