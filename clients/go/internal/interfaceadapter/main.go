// SPDX-License-Identifier: Apache-2.0

// What clients/interface_test asks of each client, done with this module: see its README.md.
//
//	interfaceadapter                 answers calls, one line of JSON each
//	interfaceadapter serve ADDRESS   serves the handler of the tests until SIGTERM
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"google.golang.org/grpc/codes"

	"muster.example/muster"
)

// call has the arguments of all calls; each reads its own.
type call struct {
	Call, Server, Controller, CA, Certificate, Key string
	Definition, Job, Path, Group, Reason           string
	Timeout, Patience, SLA                         *float64
	Batch                                          uint64
	Records                                        []map[string]any
	RequestID                                      string `json:"request_id"`
	Line                                           string
	Fields                                         map[string]string
	Traceparent                                    string
	HandlerVersion                                 string `json:"handler_version"`
	States                                         []string
	Labels                                         map[string]string
	Late, Calls                                    bool
	Since                                          float64
	ExpectedRevision                               *string `json:"expected_revision"`
	Stream                                         string
	Events                                         [][2]string // keys and bodies
	Partition                                      *int32
	Count, Fail                                    int
	Close                                          bool
	Lines                                          []int64
	Name, Cron                                     string
	Revision                                       uint64
	TimeZone                                       string `json:"time_zone"`
	At                                             float64
	CatchUp                                        string `json:"catch_up"`
	RunID                                          string `json:"run_id"`
}

func span(seconds *float64) time.Duration {
	if seconds == nil {
		return 0
	}
	if *seconds == 0 {
		return -1
	}
	return time.Duration(*seconds * float64(time.Second))
}

// told is what the tests look at, under the names that all adapters use.
func told(batch *muster.Batch) map[string]any {
	answer := map[string]any{"number": batch.Number, "revision": batch.Revision, "job": batch.Job,
		"state": batch.State.String(), "over": batch.Over(), "request_id": string(batch.RequestID),
		"transactions": batch.Transactions, "aggregated": batch.Aggregated, "rejected": batch.Rejected,
		"dead_lettered": batch.DeadLettered, "items": batch.Items, "attempts": batch.Attempts,
		"sla": nil, "late_by": batch.LateBy.Seconds(), "promised": nil,
		"committed": batch.Flow.Committed, "problem": batch.Problem,
		"retry_of": batch.RetryOf, "retried_in": append([]uint64{}, batch.RetriedIn...),
		"labels": batch.Labels, "cancel_reason": batch.CancelReason, "traceparent": batch.Traceparent}
	if batch.SLA != 0 {
		answer["sla"] = batch.SLA.Seconds()
		answer["promised"] = batch.Deadline.Sub(batch.Created).Seconds()
	}
	return answer
}

// answers go to the test, one line each.
var answers = json.NewEncoder(os.Stdout)

type adapter struct{ client *muster.Client }

func (a *adapter) open(c call) (any, error) {
	if a.client != nil {
		_ = a.client.Close()
	}
	client, err := muster.NewClient(c.Server, muster.Options{CA: c.CA, Certificate: c.Certificate,
		Key: c.Key, Controller: c.Controller, Timeout: span(c.Timeout), Patience: span(c.Patience)})
	a.client = client
	return nil, err
}

func (a *adapter) applyJob(ctx context.Context, c call) (any, error) {
	apply := a.client.ApplyJob
	if c.ExpectedRevision != nil {
		apply = func(ctx context.Context, definition string) (*muster.Job, error) {
			return a.client.ApplyJobAt(ctx, definition, *c.ExpectedRevision)
		}
	}
	job, err := apply(ctx, c.Definition)
	if err != nil {
		return nil, err
	}
	outputs := []any{}
	for _, column := range job.Outputs {
		outputs = append(outputs, []any{column.Name, column.Kind, column.Scale})
	}
	groups := []any{}
	for _, group := range job.Groups {
		measures := []any{}
		for _, measure := range group.Measures {
			measures = append(measures, []any{measure.Name, measure.Whole, measure.Scale})
		}
		groups = append(groups, map[string]any{"name": group.Name, "keys": group.Keys, "measures": measures})
	}
	return map[string]any{"name": job.Name, "revised": job.Revised, "columns": job.Columns,
		"revision": job.Revision, "groups": groups, "outputs": outputs}, nil
}

func (a *adapter) submit(ctx context.Context, c call) (any, error) {
	content := muster.File(c.Path)
	if c.Records != nil {
		var err error
		if content, err = muster.JSONLines(c.Records); err != nil {
			return nil, err
		}
	}
	batch, err := a.client.Submit(ctx, c.Job, content, muster.Submission{RequestID: c.RequestID,
		SLA: span(c.SLA), Traceparent: c.Traceparent, HandlerVersion: c.HandlerVersion, Labels: c.Labels,
		Progress: func(progress muster.SubmitProgress) {
			_ = answers.Encode(map[string]uint64{"durable": progress.Durable}) // the answer fails, too
		}})
	return batchOr(batch, err)
}

func (a *adapter) watch(ctx context.Context, c call) (any, error) {
	for batch, err := range a.client.Watch(ctx, c.Batch, 0) {
		if err == nil {
			err = answers.Encode(map[string]any{"status": told(batch)})
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (a *adapter) list(ctx context.Context, c call) (any, error) {
	filter := muster.BatchFilter{Job: c.Job, Labels: c.Labels, Late: c.Late, Calls: c.Calls}
	if c.Since != 0 {
		filter.Since = time.UnixMilli(int64(c.Since * 1000))
	}
	for _, name := range c.States {
		for _, state := range []muster.BatchState{muster.Open, muster.Sealed, muster.Complete, muster.Cancelled} {
			if state.String() == name {
				filter.States = append(filter.States, state)
			}
		}
	}
	batches := []any{}
	for batch, err := range a.client.List(ctx, filter) {
		if err != nil {
			return nil, err
		}
		batches = append(batches, told(batch))
	}
	return batches, nil
}

func (a *adapter) report(ctx context.Context, c call) (any, error) {
	report, err := a.client.Report(ctx, c.Batch, c.Group)
	rows := []any{}
	for _, row := range report {
		measures := map[string]string{}
		for name, sum := range row.Measures {
			measures[name] = sum.StringFixed(-sum.Exponent())
		}
		rows = append(rows, map[string]any{"keys": row.Keys, "measures": measures})
	}
	return rows, err
}

func failed(transactions iter.Seq2[muster.FailedTransaction, error]) (any, error) {
	found := []any{}
	for transaction, err := range transactions {
		if err != nil {
			return nil, err
		}
		var record any
		if transaction.Record != nil {
			record = string(transaction.Record)
		}
		found = append(found, []any{transaction.Item, transaction.Line, transaction.Reason, record,
			transaction.RetriedIn, transaction.RetryOfLine})
	}
	return found, nil
}

func (a *adapter) callOne(ctx context.Context, c call) (any, error) {
	answer, err := a.client.Call(ctx, c.Job, muster.Record{Line: c.Line, Fields: c.Fields, RequestID: c.RequestID})
	var refused *muster.NotAccepted
	if errors.As(err, &refused) {
		outcome := "rejected"
		if refused.DeadLettered {
			outcome = "dead_lettered"
		}
		return map[string]any{"outcome": outcome, "batch": refused.Batch, "line": refused.Line,
			"reason": refused.Reason}, nil
	}
	if err != nil {
		return nil, err
	}
	outputs := []any{}
	for _, values := range answer.Outputs {
		outputs = append(outputs, toldValues(values))
	}
	return map[string]any{"outcome": "accepted", "batch": answer.Batch, "line": answer.Line,
		"outputs": outputs}, nil
}

func toldValue(value any) any {
	switch value := value.(type) {
	case string:
		return []string{"text", value}
	case int64:
		return []string{"int", strconv.FormatInt(value, 10)}
	case decimal.Decimal:
		return []string{"decimal", value.StringFixed(-value.Exponent())}
	}
	return value
}

func toldValues(values muster.Values) map[string]any {
	told := map[string]any{}
	for name, value := range values {
		told[name] = toldValue(value)
	}
	return told
}

func (a *adapter) output(ctx context.Context, c call) (any, error) {
	for record, err := range a.client.Output(ctx, c.Batch) {
		if err != nil {
			return nil, err
		}
		if err := answers.Encode(map[string]any{"record": []any{record.Line, toldValues(record.Values)}}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func batchOr(batch *muster.Batch, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return told(batch), nil
}

func (a *adapter) do(ctx context.Context, c call) (any, error) {
	switch c.Call {
	case "open":
		return a.open(c)
	case "apply_job":
		return a.applyJob(ctx, c)
	case "submit":
		return a.submit(ctx, c)
	case "watch":
		return a.watch(ctx, c)
	case "wait":
		waiting, cancel := context.WithTimeout(ctx, span(c.Timeout))
		defer cancel()
		return batchOr(a.client.Wait(waiting, c.Batch))
	case "get":
		return batchOr(a.client.Get(ctx, c.Batch))
	case "list":
		return a.list(ctx, c)
	case "cancel":
		return batchOr(a.client.Cancel(ctx, c.Batch, c.Reason))
	case "report":
		return a.report(ctx, c)
	case "rejections":
		return failed(a.client.Rejections(ctx, c.Batch))
	case "dead_letters":
		return failed(a.client.DeadLetters(ctx, c.Batch))
	case "send":
		return send(ctx, c)
	case "process":
		return process(ctx, c)
	case "output":
		return a.output(ctx, c)
	case "call":
		return a.callOne(ctx, c)
	case "retry":
		return a.retry(ctx, c)
	case "receipt":
		receipt, err := a.client.Receipt(ctx, c.Batch)
		if err != nil {
			return nil, err
		}
		return receipt.Text, nil
	}
	return a.doSchedule(ctx, c)
}

// codeNames are as in the specification of gRPC, and as in the other adapters.
var codeNames = map[codes.Code]string{codes.Canceled: "CANCELLED", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.AlreadyExists: "ALREADY_EXISTS", codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.FailedPrecondition: "FAILED_PRECONDITION",
	codes.Unavailable: "UNAVAILABLE", codes.Aborted: "ABORTED"}

func failure(err error) any {
	var found *muster.Error
	if !errors.As(err, &found) {
		return map[string]any{"code": "", "message": err.Error()}
	}
	fields, problems := []string{}, []any{}
	for _, violation := range found.Violations {
		fields = append(fields, violation.Field)
	}
	for _, problem := range found.Problems {
		problems = append(problems, []any{problem.Line, problem.Column, problem.Message})
	}
	facts := map[string]string{}
	for name, fact := range found.Facts {
		facts[name] = fact
	}
	return map[string]any{"code": codeNames[found.Code], "message": found.Message, "reason": found.Reason,
		"facts": facts, "fields": fields, "problems": problems, "retried": toldRetried(found.Retried)}
}

func answerCalls() error {
	ctx := context.Background()
	var adapter adapter
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		answer, err := adapter.do(ctx, c)
		said := map[string]any{"answer": answer}
		if err != nil {
			said = map[string]any{"error": failure(err)}
		}
		if err := answers.Encode(said); err != nil {
			return err
		}
	}
	return lines.Err()
}

func serve(address string) error {
	server, err := muster.ServeHandler(total, muster.HandlerOptions{Version: "1", Listen: address,
		Columns: []string{"customer", "amount"}, Concurrency: 4})
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", server.Address())
	return server.Run(context.Background(), 30*time.Second)
}

func main() {
	run := answerCalls
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "serve") {
		run = func() error { return serve(os.Args[2]) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
