// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/muster/internal/musterv1"
)

var groups = map[string]*Group{
	"by_customer": {"by_customer", []string{"customer"}, []Measure{{"spent", false, 2}, {"purchases", true, 0}}},
	"total":       {"total", []string{"all"}, []Measure{{"spent", false, 2}}},
}

func spent(amount decimal.Decimal, customer string, purchases decimal.Decimal) Rows {
	return Rows{"by_customer": {map[string]string{"customer": customer},
		map[string]decimal.Decimal{"spent": amount, "purchases": purchases}}}
}

func number(text string) decimal.Decimal { return decimal.RequireFromString(text) }

var columns = []OutputColumn{{"note", TextOutput, 0}, {"count", IntOutput, 0}, {"total", DecimalOutput, 2}}

func testResults() *Results {
	return newResults(&HandledJob{Groups: groups, Outputs: columns}, []Transaction{{Line: 1}, {Line: 2}})
}

func add(t *testing.T, results *Results, rows Rows) {
	t.Helper()
	if err := results.Add(rows); err != nil {
		t.Fatal(err)
	}
}

// sums are what is told, by group and keys.
func sums(results *Results) map[string]string {
	told := map[string]string{}
	for _, group := range results.toProto().GetGroups() {
		for _, row := range group.GetRows() {
			told[group.GetGroup()+" "+strings.Join(row.GetKeys(), ",")] = strings.Join(row.GetMeasures(), " ")
		}
	}
	return told
}

func TestRowsWithTheSameKeysAreAddedUpExactly(t *testing.T) {
	results := testResults()
	add(t, results, spent(number("0.1"), "Ada", Whole(1)))
	add(t, results, spent(number("0.2"), "Ada", Whole(1)))
	add(t, results, spent(Whole(-3), "Bob", Whole(1)))
	expected := map[string]string{"by_customer Ada": "0.30 2", "by_customer Bob": "-3.00 1"}
	if told := sums(results); !reflect.DeepEqual(told, expected) {
		t.Errorf("told: %v", told)
	}
}

func TestSumsOf38DigitsAreNotRounded(t *testing.T) {
	results := testResults()
	large := strings.Repeat("9", 36)
	add(t, results, spent(number(large+".98"), "Ada", Whole(1)))
	add(t, results, spent(number("0.01"), "Ada", Whole(1)))
	if told := sums(results)["by_customer Ada"]; told != large+".99 2" {
		t.Errorf("told: %s", told)
	}
	isUnfit(t, results.Add(spent(number("0.01"), "Ada", Whole(1))), "spent: overflows")
}

func isUnfit(t *testing.T, err error, words string) {
	t.Helper()
	var reason *Unfit
	if !errors.As(err, &reason) || !strings.Contains(reason.Reason, words) {
		t.Errorf("error: %v", err)
	}
}

func TestMoreDecimalsThanTheJobKeepsAreRefusedAndNotRounded(t *testing.T) {
	results := testResults()
	for _, text := range []string{"0.125", "1e-999999", "123456.001"} {
		isUnfit(t, results.Add(spent(number(text), "Ada", Whole(1))), "spent: needs more than 2 decimals")
	}
	add(t, results, spent(number("0.1200"), "Ada", Whole(1)))
	if told := sums(results)["by_customer Ada"]; told != "0.12 1" {
		t.Errorf("told: %s", told)
	}
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	results := testResults()
	isUnfit(t, results.Add(spent(number("1e999999"), "Ada", Whole(1))), "spent: overflows")
	isUnfit(t, results.Add(spent(Whole(1), "Ada", number("9223372036854775808"))), "purchases: overflows")
	isUnfit(t, results.Add(spent(Whole(1), strings.Repeat("x", 1025), Whole(1))), "customer: longer")
	add(t, results, spent(number("0e999999"), "Ada", number("-9223372036854775808")))
	isUnfit(t, results.Add(spent(Whole(1), "\xff", Whole(1))), "customer: not UTF-8 text")
	isUnfit(t, results.Add(spent(Whole(1), "a\x00", Whole(1))), "customer: a NUL is not allowed")
}

func TestATransactionCountsInAllItsGroupsOrInNone(t *testing.T) {
	results := testResults()
	rows := spent(Whole(1), "Ada", Whole(1))
	rows["total"] = Row{map[string]string{"all": ""}, map[string]decimal.Decimal{"spent": number("0.001")}}
	isUnfit(t, results.Add(rows), "decimals")
	if told := sums(results); len(told) != 0 {
		t.Errorf("told: %v", told)
	}
}

func TestRowsThatAreNoneOfTheJobAreAMistakeOfTheProgram(t *testing.T) {
	for name, mistake := range map[string]func(*Results){
		"group": func(r *Results) { _ = r.Add(Rows{"planets": {}}) },
		"keys":  func(r *Results) { _ = r.Add(Rows{"total": {Measures: map[string]decimal.Decimal{"spent": Whole(1)}}}) },
		"line":  func(r *Results) { r.Reject(3, "there is no such line") },
		"record's line": func(r *Results) {
			_ = r.Output(3, Values{"note": "", "count": 1, "total": 1})
		},
		"column": func(r *Results) { _ = r.Output(1, Values{"note": "", "count": 1, "sum": 1}) },
		"float":  func(r *Results) { _ = r.Output(1, Values{"note": "", "count": 1, "total": 0.5}) },
		"text":   func(r *Results) { _ = r.Output(1, Values{"note": nil, "count": 1, "total": 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("was taken")
				}
			}()
			mistake(testResults())
		})
	}
}

func output(t *testing.T, results *Results, line int64, values Values) {
	t.Helper()
	if err := results.Output(line, values); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsOfRejectedLinesAreLeftOut(t *testing.T) {
	results := testResults()
	output(t, results, 2, Values{"note": "b", "count": nil, "total": number("1E+2")})
	output(t, results, 1, Values{"note": "a", "count": -3, "total": int64(7)})
	output(t, results, 1, Values{"note": "", "count": number("9223372036854775807"), "total": nil})
	results.Reject(2, "no")
	var told []string
	for _, record := range results.toProto().GetOutputs() {
		if record.GetLine() != 1 {
			t.Errorf("line %d", record.GetLine())
		}
		told = append(told, strings.Join(record.GetFields(), "|"))
	}
	if expected := []string{"a|-3|7.00", "|9223372036854775807|"}; !reflect.DeepEqual(told, expected) {
		t.Errorf("told: %v", told)
	}
}

func TestARecordThatDoesNotFitItsColumnsIsRefused(t *testing.T) {
	results := testResults()
	longest := strings.Repeat("x", 65536-4-4-4-5-4)
	for reason, values := range map[string]Values{
		"count: overflows":                       {"note": "", "count": number("9223372036854775808"), "total": 1},
		"count: needs more than 0 decimals":      {"note": "", "count": number("0.5"), "total": 1},
		"total: needs more than 2 decimals":      {"note": "", "count": 1, "total": number("1e-999999")},
		"total: overflows":                       {"note": "", "count": 1, "total": number("1e999999")},
		"note: a NUL is not allowed":             {"note": "a\x00b", "count": 1, "total": 1},
		"a record of 65537 bytes; at most 65536": {"note": longest + "x", "count": 7, "total": number("0.5")},
	} {
		isUnfit(t, results.Output(1, values), reason)
	}
	isUnfit(t, results.Output(1, Values{"note": "\xff", "count": 1, "total": 1}), "note: not UTF-8 text")
	if told := results.toProto().GetOutputs(); len(told) != 0 {
		t.Errorf("told: %v", told)
	}
	output(t, results, 1, Values{"note": longest, "count": 7, "total": number("0.5")})
}

// total is what most tests serve.
func total(_ context.Context, item *Item, results *Results) error {
	for _, transaction := range item.Transactions {
		amount, err := decimal.NewFromString(transaction.Get("amount"))
		if err == nil {
			err = results.Add(spent(amount, transaction.Get("customer"), Whole(1)))
		}
		if err != nil {
			results.Reject(transaction.Line, "amount: "+err.Error())
		}
	}
	return nil
}

func serve(t *testing.T, work Work, options HandlerOptions) *HandlerServer {
	t.Helper()
	options.Version, options.Listen = "1", "127.0.0.1:0"
	server, err := ServeHandler(work, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(0) })
	return server
}

// processor is a processor's side of one call.
type processor struct {
	t    *testing.T
	call musterv1.HandlerService_WorkClient
}

func callHandler(t *testing.T, server *HandlerServer) *processor {
	t.Helper()
	return callWith(t.Context(), t, server)
}

func callWith(ctx context.Context, t *testing.T, server *HandlerServer) *processor {
	t.Helper()
	channel, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = channel.Close() })
	call, err := musterv1.NewHandlerServiceClient(channel).Work(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &processor{t, call}
}

func (p *processor) greet(version int32, columns ...string) (*musterv1.Ready, error) {
	p.t.Helper()
	schema := &musterv1.JobSchema{Job: "purchases", Columns: columns, Groups: []*musterv1.GroupSchema{{
		Name: "by_customer", Keys: []string{"customer"}, Measures: []*musterv1.MeasureSchema{
			{Name: "spent", Type: musterv1.MeasureType_MEASURE_TYPE_DECIMAL, Scale: 2},
			{Name: "purchases", Type: musterv1.MeasureType_MEASURE_TYPE_INT}}}}}
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Hello{Hello: &musterv1.Hello{
		ProtocolVersion: version, Schema: schema, Processor: "test"}}})
	response, err := p.call.Recv()
	return response.GetReady(), err
}

func (p *processor) send(request *musterv1.WorkRequest) {
	p.t.Helper()
	if err := p.call.Send(request); err != nil && err != io.EOF { // Recv says why it ended
		p.t.Fatal(err)
	}
}

func (p *processor) give(name string, records ...[]string) {
	p.t.Helper()
	item := &musterv1.HandlerItem{Item: name, Attempt: 1, Deadline: durationpb.New(time.Minute)}
	for place, fields := range records {
		item.Transactions = append(item.Transactions,
			&musterv1.HandlerTransaction{Line: int64(place + 1), Fields: fields})
	}
	p.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Item{Item: item}})
}

func (p *processor) answer() *musterv1.HandlerAnswer {
	p.t.Helper()
	response, err := p.call.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return response.GetAnswer()
}

func greeted(t *testing.T, server *HandlerServer) *processor {
	t.Helper()
	processor := callHandler(t, server)
	if _, err := processor.greet(1, "customer", "amount"); err != nil {
		t.Fatal(err)
	}
	return processor
}

func TestAnItemIsAnsweredWithItsSumsAndWhatIsRejected(t *testing.T) {
	processor := callHandler(t, serve(t, total, HandlerOptions{Name: "totals", Concurrency: 3}))
	ready, err := processor.greet(1, "customer", "amount")
	if err != nil || ready.GetName() != "totals" || ready.GetVersion() != "1" || ready.GetConcurrency() != 3 {
		t.Fatalf("ready: %v, %v", ready, err)
	}
	processor.give("1/7", []string{"Ada", "19.99"}, []string{"Ada", "0.01"}, []string{"Bob", "five"})
	answer := processor.answer()
	rows := answer.GetOk().GetGroups()[0].GetRows()
	if answer.GetItem() != "1/7" || len(rows) != 1 || rows[0].GetMeasures()[0] != "20.00" {
		t.Errorf("answer: %v", answer)
	}
	if rejected := answer.GetOk().GetRejected(); len(rejected) != 1 || rejected[0].GetLine() != 3 {
		t.Errorf("rejected: %v", rejected)
	}
	if err := processor.call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := processor.call.Recv(); err != io.EOF {
		t.Errorf("the call ended with %v", err)
	}
}

// brokenError panics where it is nil, as those of many programs do, and os.PathError when it is unwrapped.
type brokenError struct{ what string }

func (b *brokenError) Error() string { return b.what }
func (b *brokenError) Unwrap() error { return errors.New(b.what) }

func TestAnItemIsAnsweredWhateverItsHandlerDoes(t *testing.T) {
	does := map[string]func() error{
		"ends": func() error { runtime.Goexit(); return nil },
		"nil":  func() error { var broken *brokenError; return broken },
		"long": func() error { return errors.New(strings.Repeat("x", 5_000_000)) },
		"past": func() error { return Retry("late", -time.Second) },
		"far":  func() error { return Defer("", 1000*time.Hour) },
	}
	processor := greeted(t, serve(t, func(_ context.Context, item *Item, _ *Results) error {
		return does[item.Name]()
	}, HandlerOptions{}))
	ask := func(name string) *musterv1.HandlerAnswer {
		processor.give(name)
		return processor.answer()
	}
	if got := ask("ends").GetRetry().GetWhy(); got != "the work has ended its goroutine" {
		t.Errorf("ended: %q", got)
	}
	if got := ask("nil").GetRetry().GetWhy(); got != "<nil>" {
		t.Errorf("a nil error: %q", got)
	}
	if got := ask("long").GetRetry().GetWhy(); got != strings.Repeat("x", 1000) {
		t.Errorf("a long reason has %d bytes", len(got))
	}
	if got := ask("past").GetRetry(); got.After == nil || got.After.AsDuration() != 0 {
		t.Errorf("a time that is over: %v", got)
	}
	if got := ask("far").GetDefer(); got.GetAfter().AsDuration() != 7*24*time.Hour || got.GetWhy() != "no reason given" {
		t.Errorf("a time that is far: %v", got)
	}
}

func TestWhatAHandlerReturnsOrPanicsWithIsAnOutcome(t *testing.T) {
	outcomes := map[string]func() error{
		"retry": func() error { return Retry("later", time.Minute) },
		"defer": func() error { return Defer("not now", 0) },
		"dead":  func() error { return Dead("never") },
		"error": func() error { return errors.New("broken") },
		"panic": func() error { panic("very broken") },
	}
	processor := greeted(t, serve(t, func(_ context.Context, item *Item, _ *Results) error {
		return outcomes[item.Name]()
	}, HandlerOptions{}))
	ask := func(name string) *musterv1.HandlerAnswer {
		processor.give(name, []string{"Ada", "1"})
		return processor.answer()
	}
	if told := ask("retry").GetRetry(); told.GetWhy() != "later" || told.GetAfter().AsDuration() != time.Minute {
		t.Errorf("retry: %v", told)
	}
	if told := ask("defer").GetDefer(); told.GetWhy() != "not now" || told.GetAfter() != nil {
		t.Errorf("defer: %v", told)
	}
	if told := ask("dead").GetDead(); told.GetWhy() != "never" {
		t.Errorf("dead: %v", told)
	}
	if told := ask("error").GetRetry(); told.GetWhy() != "broken" {
		t.Errorf("error: %v", told)
	}
	if told := ask("panic").GetRetry(); told.GetWhy() != "panic: very broken" {
		t.Errorf("panic: %v", told)
	}
}

// gRPC would end the call, with all that is at work in it.
func TestAReasonThatIsNoTextEndsNoCall(t *testing.T) {
	const cut = "\xc3"
	outcomes := map[string]error{"retry": Retry(cut, 0), "defer": Defer(cut, 0), "dead": Dead(cut), "error": errors.New(cut)}
	processor := greeted(t, serve(t, func(_ context.Context, item *Item, results *Results) error {
		if item.Name == "reject" {
			results.Reject(1, cut)
		}
		return outcomes[item.Name]
	}, HandlerOptions{}))
	for _, name := range []string{"retry", "defer", "dead", "error", "reject"} {
		processor.give(name, []string{"Ada", "1"})
		told := processor.answer()
		whys := []string{told.GetRetry().GetWhy(), told.GetDefer().GetWhy(), told.GetDead().GetWhy()}
		for _, rejected := range told.GetOk().GetRejected() {
			whys = append(whys, rejected.GetReason())
		}
		if !slices.Contains(whys, "\uFFFD") {
			t.Errorf("%s: %v", name, told)
		}
	}
}

func TestResultsThatFitNoMessageAreDead(t *testing.T) {
	processor := greeted(t, serve(t, func(_ context.Context, item *Item, results *Results) error {
		for row := range int64(5000) {
			name := strings.Repeat("x", 1000) + decimal.NewFromInt(row).String()
			if err := results.Add(spent(Whole(1), name, Whole(1))); err != nil {
				return err
			}
		}
		return nil
	}, HandlerOptions{}))
	processor.give("1/1", []string{"Ada", "1"})
	if told := processor.answer().GetDead(); !strings.Contains(told.GetWhy(), "more than a message may have") {
		t.Errorf("told: %v", told)
	}
}

func TestAJobThatTheHandlerCannotWorkOnIsRefused(t *testing.T) {
	server := serve(t, total, HandlerOptions{Name: "totals", Columns: []string{"customer", "amount"},
		Groups: []string{"by_customer"}})
	_, err := callHandler(t, server).greet(1, "customer")
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "needs the column amount") {
		t.Errorf("error: %v", err)
	}
	if _, err = callHandler(t, server).greet(2, "customer", "amount"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("error: %v", err)
	}
}

func TestAnItemThatIsAbandonedHasItsContextEndedAndNoAnswer(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	processor := greeted(t, serve(t, func(ctx context.Context, item *Item, results *Results) error {
		if item.Name == "1/1" {
			close(begun)
			<-ctx.Done()
			close(ended)
		}
		return nil
	}, HandlerOptions{Concurrency: 2}))
	processor.give("1/1", []string{"Ada", "1"})
	<-begun
	processor.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Abandon{
		Abandon: &musterv1.Abandon{Item: "1/1"}}})
	<-ended
	processor.give("1/2", []string{"Ada", "1"})
	if told := processor.answer().GetItem(); told != "1/2" {
		t.Errorf("answered: %s", told)
	}
}

func TestWhatComesAgainAfterItWasAbandonedIsAnswered(t *testing.T) {
	begun := make(chan context.Context)
	processor := greeted(t, serve(t, func(ctx context.Context, item *Item, results *Results) error {
		begun <- ctx
		if item.Attempt == 1 {
			<-ctx.Done()
		}
		return nil
	}, HandlerOptions{Concurrency: 2}))
	abandon := func(item string) {
		processor.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Abandon{
			Abandon: &musterv1.Abandon{Item: item}}})
	}
	processor.give("1/1", []string{"Ada", "1"})
	first := <-begun
	abandon("1/1")
	<-first.Done()
	abandon("1/9") // what it does not have is passed over
	again := &musterv1.HandlerItem{Item: "1/1", Attempt: 2, Deadline: durationpb.New(time.Minute)}
	processor.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Item{Item: again}})
	<-begun
	if told := processor.answer(); told.GetItem() != "1/1" || told.GetOk() == nil {
		t.Errorf("answered: %v", told)
	}
}

func TestSeveralItemsAreWorkedOnAtATime(t *testing.T) {
	begun, mayEnd := make(chan string), make(chan struct{})
	processor := greeted(t, serve(t, func(_ context.Context, item *Item, _ *Results) error {
		begun <- item.Name
		<-mayEnd
		return nil
	}, HandlerOptions{Concurrency: 2}))
	processor.give("1/1", []string{"Ada", "1"})
	processor.give("1/2", []string{"Ada", "1"})
	at := map[string]bool{<-begun: true, <-begun: true}
	close(mayEnd)
	if !at["1/1"] || !at["1/2"] {
		t.Errorf("at work: %v", at)
	}
	processor.answer()
	processor.answer()
}

func TestTheContextOfAnItemEndsAtItsDeadlineAndWithTheCall(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"deadline": time.Millisecond, "call": time.Minute} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan struct{})
			server := serve(t, func(ctx context.Context, _ *Item, _ *Results) error {
				close(begun)
				<-ctx.Done()
				close(ended)
				return ctx.Err()
			}, HandlerOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			processor := callWith(ctx, t, server)
			if _, err := processor.greet(1, "customer", "amount"); err != nil {
				t.Fatal(err)
			}
			item := &musterv1.HandlerItem{Item: "1/1", Attempt: 1, Deadline: durationpb.New(deadline)}
			processor.send(&musterv1.WorkRequest{Step: &musterv1.WorkRequest_Item{Item: item}})
			<-begun
			if name == "call" {
				cancel()
			}
			<-ended
		})
	}
}

func TestAServerThatStopsAnswersWhatItHasAndEndsTheCallWithOK(t *testing.T) {
	begun, mayEnd := make(chan struct{}), make(chan struct{})
	server := serve(t, func(context.Context, *Item, *Results) error {
		close(begun)
		<-mayEnd
		return nil
	}, HandlerOptions{})
	processor := greeted(t, server)
	processor.give("1/1", []string{"Ada", "1"})
	<-begun
	stopped := make(chan struct{})
	go func() {
		server.Stop(time.Minute)
		close(stopped)
	}()
	<-server.draining
	close(mayEnd)
	if told := processor.answer().GetItem(); told != "1/1" {
		t.Errorf("answered: %s", told)
	}
	if _, err := processor.call.Recv(); err != io.EOF {
		t.Errorf("the call ended with %v", err)
	}
	<-stopped
}

func TestProcessorsBeyondTheBoundAreToldToComeAgain(t *testing.T) {
	server := serve(t, total, HandlerOptions{MaxProcessors: 1})
	greeted(t, server)
	if _, err := callHandler(t, server).greet(1, "customer", "amount"); status.Code(err) != codes.Unavailable {
		t.Errorf("error: %v", err)
	}
}

func TestAHandlerWithoutAVersionIsRefused(t *testing.T) {
	if _, err := ServeHandler(total, HandlerOptions{}); err == nil {
		t.Error("was taken")
	}
}

// authority signs certificates for this machine, each with the next serial number, into files.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
	files       pemFiles
}

func newAuthority(t *testing.T) *authority {
	folder := t.TempDir()
	a := &authority{t: t, files: pemFiles{filepath.Join(folder, "ca.pem"), filepath.Join(folder, "me.pem"),
		filepath.Join(folder, "me.key")}}
	a.begin()
	return a
}

// begin makes a key of the authority's own, and all files anew.
func (a *authority) begin() {
	a.certificate = &x509.Certificate{SerialNumber: big.NewInt(100), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = nil
	a.key = a.sign(a.certificate, a.files.ca)
	a.renew()
}

// sign writes the certificate, and gives its key.
func (a *authority) sign(certificate *x509.Certificate, path string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, a.certificate, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(path, "CERTIFICATE", der)
	return key
}

func (a *authority) write(path, kind string, der []byte) {
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) renew() {
	a.serial++
	key := a.sign(&x509.Certificate{SerialNumber: big.NewInt(a.serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a.files.certificate)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(a.files.key, "PRIVATE KEY", der)
}

func TestAHandlerShowsARenewedCertificate(t *testing.T) {
	a := newAuthority(t)
	server, err := ServeHandler(func(context.Context, *Item, *Results) error { return nil },
		HandlerOptions{Version: "1", Listen: "127.0.0.1:0", CA: a.files.ca, Certificate: a.files.certificate,
			Key: a.files.key})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(0)
	config, err := a.files.read()
	if err != nil {
		t.Fatal(err)
	}
	shown := func() int64 {
		// With TLS 1.3, a client sees the certificate before the server refuses it for having none.
		connection, err := tls.Dial("tcp", server.Address(), &tls.Config{MinVersion: tls.VersionTLS13,
			RootCAs: config.RootCAs, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 1 {
		t.Fatalf("shown: %d", got)
	}
	a.renew()
	if got := shown(); got != 2 {
		t.Errorf("shown after it was renewed: %d", got)
	}
	a.write(a.files.key, "PRIVATE KEY", []byte("half of a file"))
	if got := shown(); got != 2 {
		t.Errorf("shown with a key that is none: %d", got)
	}
}

func TestAClientShowsARenewedCertificate(t *testing.T) {
	a := newAuthority(t)
	own, err := tls.LoadX509KeyPair(a.files.certificate, a.files.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own},
		NextProtos: []string{"h2"}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	shown := make(chan int64, 100)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if stream := connection.(*tls.Conn); stream.Handshake() == nil {
				shown <- stream.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
			}
			connection.Close()
		}
	}()
	connection, err := open(listener.Addr().String(), a.files)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.Connect()
	deadline := time.After(30 * time.Second)
	for want := int64(1); want <= 2; {
		select {
		case got := <-shown:
			if got == want {
				want++
				a.renew()
			}
		case <-deadline:
			t.Fatalf("certificate %d was never shown", want)
		}
		connection.Connect()
	}
}

func TestARenewedAuthorityIsTrustedByBothSides(t *testing.T) {
	a := newAuthority(t)
	open := func() *renewedTLS {
		opened, err := newRenewedTLS(a.files)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	before := open()
	a.begin()
	after := open()
	for _, sides := range []struct{ client, server *renewedTLS }{{before, after}, {after, before}} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		here, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		served := make(chan error, 1)
		go func() {
			there, err := listener.Accept()
			if err != nil {
				served <- err
				return
			}
			defer there.Close()
			connection, _, err := sides.server.ServerHandshake(there)
			if err == nil {
				_, err = connection.Write([]byte("welcome"))
			}
			served <- err
		}()
		connection, _, err := sides.client.ClientHandshake(t.Context(), "127.0.0.1", here)
		if err == nil {
			_, err = io.ReadAll(connection)
		}
		if refused := <-served; err != nil || refused != nil {
			t.Errorf("the client: %v; the server: %v", err, refused)
		}
	}
}
