// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"muster.example/muster/internal/musterv1"
)

const (
	protocolVersion      = 1
	defaultMaxProcessors = 256
	// Processors ping a silent connection every 30 s. Unless told otherwise, gRPC for Go may take that
	// for an attack.
	minPingInterval = 10 * time.Second
)

// HandledJob is the job that a processor calls for.
type HandledJob struct {
	Name       string
	Revision   string
	Columns    []string
	Groups     map[string]*Group
	Parameters map[string]string // the handler's `env` in the job file
	Processor  string            // who calls; for logs
	Outputs    []OutputColumn    // of the records that it may return
}

// Transaction is one record of the input; Fields are in the order of the job's columns.
type Transaction struct {
	Line   int64
	Fields []string
	places map[string]int
}

// Get gives the field of a column; HandlerOptions.Columns has jobs refused that lack it. It panics
// where the job has no such column.
func (t Transaction) Get(column string) string {
	place, there := t.places[column]
	if !there {
		panic(fmt.Sprintf("the job has no column %s", column))
	}
	return t.Fields[place]
}

// Item is a work item. It may come again, here or elsewhere: what is done outside of its results (a
// payment, a mail) must be idempotent by its name.
type Item struct {
	Job                     *HandledJob
	Name                    string
	Attempt                 int32
	Deadline                time.Duration // what the work may take; the context ends then
	Traceparent, Tracestate string        // W3C trace of the item's batch; empty: it has none
	Transactions            []Transaction
}

// Work fills an item's results. Its context ends when no one waits for them any more; going on does no harm.
// It may return Retry, Defer or Dead; any other error, and a panic, is a Retry. Calls for several items
// run at once where HandlerOptions.Concurrency is above 1.
type Work func(ctx context.Context, item *Item, results *Results) error

// HandlerOptions of a server; Version is required.
type HandlerOptions struct {
	// Stands for what the work computes; the job file must say the same.
	Version string
	// HOST:PORT; empty: localhost:7800. Port 0: one that is free; Address of the server tells.
	Listen string
	// For logs; empty: "go".
	Name string
	// Items of each processor that come at a time; 0: 1.
	Concurrency int32
	// Jobs without these are refused.
	Columns, Groups []string
	// PEM files. Certificate and Key encrypt, and with CA processors must show one of its certificates.
	CA, Certificate, Key string
	// Processors at a time, each with Concurrency items at most; 0: 256. Others are told to come again.
	MaxProcessors int
}

// HandlerServer is a server of HandlerService. For several goroutines.
type HandlerServer struct {
	musterv1.UnimplementedHandlerServiceServer
	work     Work
	options  HandlerOptions
	server   *grpc.Server
	address  string
	slots    chan struct{} // one for each processor that works here
	draining chan struct{} // closed: take nothing more
	drain    sync.Once
	failed   chan error
}

// ServeHandler starts a server for a job's `handler: {grpc: …}`; work is called for each item. To be
// ended by Run or Stop.
func ServeHandler(work Work, options HandlerOptions) (*HandlerServer, error) {
	if options.Version == "" {
		return nil, errors.New("muster: a handler needs a version")
	}
	if options.Listen == "" {
		options.Listen = "localhost:7800"
	}
	if options.Name == "" {
		options.Name = "go"
	}
	options.Concurrency = max(options.Concurrency, 1)
	if options.MaxProcessors <= 0 {
		options.MaxProcessors = defaultMaxProcessors
	}
	how := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval})}
	files := pemFiles{options.CA, options.Certificate, options.Key}
	if files.wanted() {
		renewed, err := newRenewedTLS(files)
		if err != nil {
			return nil, err
		}
		if files.certificate == "" {
			return nil, errors.New("muster: a ca goes with a certificate and a key")
		}
		how = append(how, grpc.Creds(renewed))
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(options.Listen) // it was listened on
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	s := &HandlerServer{work: work, options: options, server: grpc.NewServer(how...),
		address: net.JoinHostPort(host, port), slots: make(chan struct{}, options.MaxProcessors),
		draining: make(chan struct{}), failed: make(chan error, 1)}
	musterv1.RegisterHandlerServiceServer(s.server, s)
	go func() { s.failed <- s.server.Serve(listener) }()
	return s, nil
}

// Address is HOST:PORT, the port that it listens on.
func (s *HandlerServer) Address() string { return s.address }

// Run serves until SIGTERM or SIGINT comes, or ctx ends; then it stops, for grace at most. A second
// signal ends the program at once.
func (s *HandlerServer) Run(ctx context.Context, grace time.Duration) error {
	told, forget := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer forget()
	select {
	case err := <-s.failed:
		return err
	case <-told.Done():
	}
	forget()
	s.Stop(grace)
	return nil
}

// Stop takes nothing new, answers what is at work for grace, and ends. Again, it does nothing. What is
// not answered goes elsewhere, and counts as no attempt.
func (s *HandlerServer) Stop(grace time.Duration) {
	s.drain.Do(func() { close(s.draining) })
	timer := time.AfterFunc(grace, s.server.Stop)
	defer timer.Stop()
	s.server.GracefulStop()
}

// Work is one call of one processor, as long as it works for the job. gRPC calls it.
func (s *HandlerServer) Work(stream musterv1.HandlerService_WorkServer) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return status.Error(codes.Unavailable, "too many processors call this handler")
	}
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	job, err := s.accept(request.GetHello())
	if err != nil {
		return err
	}
	ready := &musterv1.Ready{Name: s.options.Name, Version: s.options.Version,
		Concurrency: s.options.Concurrency}
	if err := stream.Send(&musterv1.WorkResponse{Step: &musterv1.WorkResponse_Ready{Ready: ready}}); err != nil {
		return err
	}
	return newCall(stream, job, s.work).serve(s.draining)
}

func (s *HandlerServer) accept(hello *musterv1.Hello) (*HandledJob, error) {
	if hello.GetProtocolVersion() != protocolVersion {
		return nil, status.Errorf(codes.FailedPrecondition, "%s speaks version %d, not %d",
			s.options.Name, protocolVersion, hello.GetProtocolVersion())
	}
	job := &HandledJob{Name: hello.GetSchema().GetJob(), Revision: hello.GetSchema().GetRevision(),
		Columns: hello.GetSchema().GetColumns(), Groups: map[string]*Group{},
		Parameters: hello.GetParameters(), Processor: hello.GetProcessor(),
		Outputs: toColumns(hello.GetSchema().GetOutputs())}
	for _, group := range hello.GetSchema().GetGroups() {
		job.Groups[group.GetName()] = toGroup(group)
	}
	for _, need := range []struct {
		kind          string
		needed, there []string
	}{{"column", s.options.Columns, job.Columns},
		{"group", s.options.Groups, slices.Collect(maps.Keys(job.Groups))}} {
		missing := slices.DeleteFunc(slices.Sorted(slices.Values(need.needed)),
			func(name string) bool { return slices.Contains(need.there, name) })
		if len(missing) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "%s needs the %s %s, which job %s does not have",
				s.options.Name, need.kind, strings.Join(missing, ", "), job.Name)
		}
	}
	return job, nil
}
