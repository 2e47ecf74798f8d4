// SPDX-License-Identifier: Apache-2.0

// Package muster submits batches to a mesh, follows them, reads what was counted, and serves handlers.
//
// README.md begins with complete programs; docs/api.md says which error comes when.
package muster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"time"

	"crypto/rand"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/muster/internal/musterv1"
)

// Options of a Client; the zero value is for a mesh on this machine.
type Options struct {
	// PEM files. Plaintext, unless one is named: CA has the roots that the servers' certificates must
	// come from, without it those of the system are taken; Certificate and Key say who asks.
	CA, Certificate, Key string
	// HOST:PORT of the controller that has the report; empty: the initiator is asked.
	Controller string
	// What a call takes at most, with its tries, where its context has no deadline; 0: 30 s.
	Timeout time.Duration
	// Uploads and watches give up after so long without news; 0: two minutes, below 0: at once.
	Patience time.Duration
	// Hears when an upload or a watch waits for its server; nil: slog.Default().
	Logger *slog.Logger
}

// Client talks to a mesh. For several goroutines; to be closed.
//
// Every method fails with an *Error. A call that is answered Unavailable is tried again for some
// seconds; uploads and watches go on where they were cut off. The end of its context ends any call.
type Client struct {
	options   Options
	channel   *grpc.ClientConn
	batches   musterv1.BatchServiceClient
	calls     musterv1.CallServiceClient
	jobs      musterv1.JobServiceClient
	mesh      musterv1.MeshServiceClient
	schedules musterv1.ScheduleServiceClient
	closing   sync.Once
	closed    chan struct{}
}

// NewClient makes a client of the initiator at server, HOST:PORT. It connects with its first call.
func NewClient(server string, options Options) (*Client, error) {
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Patience == 0 {
		options.Patience = 2 * time.Minute
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Controller != "" {
		if err := checkAddress(options.Controller); err != nil {
			return nil, err
		}
	}
	c := &Client{options: options, closed: make(chan struct{})}
	channel, err := open(server, c.files())
	if err != nil {
		return nil, err
	}
	c.channel = channel
	c.batches = musterv1.NewBatchServiceClient(channel)
	c.calls = musterv1.NewCallServiceClient(channel)
	c.jobs = musterv1.NewJobServiceClient(channel)
	c.mesh = musterv1.NewMeshServiceClient(channel)
	c.schedules = musterv1.NewScheduleServiceClient(channel)
	return c, nil
}

// Close cancels what still runs; what would be tried again fails with ErrClosed.
func (c *Client) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.channel.Close()
}

func (c *Client) files() pemFiles {
	return pemFiles{c.options.CA, c.options.Certificate, c.options.Key}
}

func (c *Client) patience(limit time.Duration) *patience {
	return &patience{limit: limit, log: c.options.Logger, closed: c.closed}
}

// Job is a job as the mesh keeps it.
type Job struct {
	Name     string
	Revision string
	Revised  bool // results are decided otherwise than before; true for a new job
	Columns  []string
	Groups   []Group
	Outputs  []OutputColumn // of the records that its handler may return
}

// ApplyJob makes a job of its definition, the text of a job file, or replaces its definition.
//
// InvalidArgument: it has mistakes, which the error's Problems list.
func (c *Client) ApplyJob(ctx context.Context, definition string) (*Job, error) {
	return c.applyJob(ctx, &musterv1.ApplyJobRequest{Definition: definition})
}

// ApplyJobAt does so if the job is at the expected revision; "" expects that there is none.
//
// Aborted: it is at another one.
func (c *Client) ApplyJobAt(ctx context.Context, definition, expectedRevision string) (*Job, error) {
	return c.applyJob(ctx, &musterv1.ApplyJobRequest{Definition: definition, ExpectedRevision: &expectedRevision})
}

func (c *Client) applyJob(ctx context.Context, request *musterv1.ApplyJobRequest) (*Job, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.jobs.ApplyJob(ctx, request)
	if err != nil {
		return nil, c.explained(ctx, fromRPC(err), request.GetDefinition())
	}
	job := &Job{Name: response.GetJob().GetName(), Revision: response.GetJob().GetRevision(),
		Revised: response.GetRevised(), Columns: response.GetJob().GetSchema().GetColumns(),
		Outputs: toColumns(response.GetJob().GetSchema().GetOutputs())}
	for _, group := range response.GetJob().GetSchema().GetGroups() {
		job.Groups = append(job.Groups, *toGroup(group))
	}
	return job, nil
}

// explained adds the mistakes one by one. Where they cannot be asked for, refused says enough.
func (c *Client) explained(ctx context.Context, refused *Error, definition string) *Error {
	if refused.Code != codes.InvalidArgument {
		return refused
	}
	response, err := c.jobs.CheckJob(ctx, &musterv1.CheckJobRequest{Definition: definition})
	if err != nil {
		return refused
	}
	for _, found := range response.GetProblems() {
		refused.Problems = append(refused.Problems,
			JobProblem{int(found.GetLine()), int(found.GetColumn()), found.GetMessage()})
	}
	return refused
}

// Submission is what may go with a submit.
type Submission struct {
	// Names the submission: the same id never makes a second batch. Empty: content that can be read
	// twice names itself, as with `muster batch submit`; other content is a new batch each time.
	RequestID string
	// The handler version that the batch is bound to; empty: the one that the job has now.
	HandlerVersion string
	Tenant         string
	// What this batch is promised instead of what its job promises; 0: the job's.
	SLA time.Duration
	// The W3C trace that the batch belongs to, and what comes with it.
	Traceparent, Tracestate string
	// What List finds the batch by later: at most 16 names and values.
	Labels map[string]string
	// Is called whenever more is durable, on the calling goroutine.
	Progress func(SubmitProgress)
}

// Submit uploads a batch, and returns when it is durable as a whole. Of what was read of the content, at
// most some 10 MiB are kept in memory.
//
// The same RequestID never makes a second batch: submit again after a crash, and the upload goes on where
// the initiator's disk ends. The errors are those of BatchService.Submit, and what the content cannot
// be read for.
func (c *Client) Submit(ctx context.Context, job string, content Content, submission Submission) (*Batch, error) {
	source, err := content.open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	size, known := source.size()
	id := submission.RequestID
	if id == "" {
		if id, err = nameOf(job, source); err != nil {
			return nil, err
		}
	}
	header := &musterv1.SubmitHeader{Job: job, RequestId: []byte(id), Tenant: submission.Tenant,
		Traceparent: submission.Traceparent, Tracestate: submission.Tracestate, Labels: submission.Labels}
	if known {
		header.SizeHint = size
	}
	if submission.HandlerVersion != "" {
		header.HandlerVersion = &submission.HandlerVersion
	}
	if submission.SLA != 0 {
		header.Sla = durationpb.New(submission.SLA)
	}
	upload := &upload{content: keep(source), header: header, size: size, progress: submission.Progress}
	sealed, err := upload.run(ctx, c.batches, c.patience(c.options.Patience))
	if err != nil {
		return nil, err
	}
	return toBatch(sealed), nil
}

// nameOf gives the request id of content that was submitted without one.
func nameOf(job string, source *source) (string, error) {
	digest, twice, err := source.digest()
	if err != nil {
		return "", err
	}
	if twice {
		return fmt.Sprintf("%s:%x", job, digest), nil
	}
	return "go:" + rand.Text(), nil
}

// Watch gives the batch at once and whenever it has changed, until it is complete or cancelled. Each has
// a higher revision than the one before; those up to after are known, 0: none. The error ends it.
func (c *Client) Watch(ctx context.Context, batch, after uint64) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		patience := c.patience(c.options.Patience)
		for {
			last, wanted, err := c.watchOnce(ctx, batch, after, patience, yield)
			if !wanted || err == nil && last != nil && last.Over() {
				return
			}
			if last != nil {
				after = last.Revision
			}
			trouble := unavailable("the initiator ended the watch early")
			if err != nil {
				trouble = fromRPC(err)
			}
			if err := patience.waitAfter(ctx, trouble, "the watch"); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// watchOnce is one call; it gives the last status, and whether more is wanted.
func (c *Client) watchOnce(ctx context.Context, batch, after uint64, patience *patience,
	yield func(*Batch, error) bool) (last *Batch, wanted bool, err error) {
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	statuses, err := c.batches.WatchBatch(calling,
		&musterv1.WatchBatchRequest{Batch: batch, AfterRevision: after})
	if err != nil {
		return nil, true, err
	}
	for {
		response, err := statuses.Recv()
		if errors.Is(err, io.EOF) {
			return last, true, nil
		}
		if err != nil {
			return last, true, err
		}
		patience.refresh()
		last = toBatch(response.GetStatus())
		if !yield(last, nil) {
			return last, false, nil
		}
	}
}

// Wait gives the batch when it is complete or cancelled.
func (c *Client) Wait(ctx context.Context, batch uint64) (*Batch, error) {
	var last *Batch
	for now, err := range c.Watch(ctx, batch, 0) {
		if err != nil {
			return nil, err
		}
		last = now
	}
	return last, nil
}

// Get gives where the batch stands now.
func (c *Client) Get(ctx context.Context, batch uint64) (*Batch, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.batches.GetBatch(ctx, &musterv1.GetBatchRequest{Batch: batch})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toBatch(response.GetStatus()), nil
}

// BatchFilter says which batches List gives; of what is left empty, all but those of calls.
type BatchFilter struct {
	Job    string
	Tenant string
	States []BatchState
	Since  time.Time         // begun then or later
	Late   bool              // complete later than promised, or late by now
	Labels map[string]string // with all of these
	// Calls adds the batches that calls were made into. Without it they are left out, unless Labels
	// names theirs.
	Calls bool
}

// List gives batches, newest first, asked for page by page.
func (c *Client) List(ctx context.Context, filter BatchFilter) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		request := &musterv1.ListBatchesRequest{Job: filter.Job, Tenant: filter.Tenant, Late: filter.Late,
			Labels: filter.Labels, Calls: filter.Calls}
		if !filter.Since.IsZero() {
			request.Since = timestamppb.New(filter.Since)
		}
		for _, state := range filter.States {
			request.States = append(request.States, musterv1.BatchState(state))
		}
		for {
			asking, cancel := within(ctx, c.options.Timeout)
			response, err := c.batches.ListBatches(asking, request)
			cancel()
			if err != nil {
				yield(nil, fromRPC(err))
				return
			}
			for _, status := range response.GetBatches() {
				if !yield(toBatch(status), nil) {
					return
				}
			}
			if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}

// Cancel gives a batch up, for a reason that may be empty; what was counted stays in the report.
//
// FailedPrecondition: it is complete.
func (c *Client) Cancel(ctx context.Context, batch uint64, reason string) (*Batch, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.batches.CancelBatch(ctx, &musterv1.CancelBatchRequest{Batch: batch, Reason: reason})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toBatch(response.GetStatus()), nil
}
