// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/muster/internal/musterv1"
)

const mib = 1 << 20

// fiveMiB has no two MiB that are alike.
var fiveMiB = func() []byte {
	var lines bytes.Buffer
	for line := range 5 * mib / 8 {
		fmt.Fprintf(&lines, "%07d\n", line)
	}
	return lines.Bytes()
}()

func submit(t *testing.T, client *Client, content Content, submission Submission) *Batch {
	t.Helper()
	batch, err := client.Submit(t.Context(), "job", content, submission)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func refused(t *testing.T, err error) *Error {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("not refused: %v", err)
	}
	return failure
}

func TestWhatCanBeReadOnlyOnceGoesOnWhereItWasDurable(t *testing.T) {
	fake, client := startFake(t)
	fake.breaks = []func(int) error{breakAt(2 * mib), breakOff}
	content := Reader(onlyOnce{bytes.NewReader(fiveMiB)})
	if batch := submit(t, client, content, Submission{RequestID: "once"}); batch.Number != 7 {
		t.Errorf("batch %d", batch.Number)
	}
	if !bytes.Equal(fake.content, fiveMiB) {
		t.Error("the content is another one")
	}
	if len(fake.headers) != 3 || string(fake.headers[2].GetRequestId()) != "once" {
		t.Errorf("headers: %v", fake.headers)
	}
}

func TestAnUploadThatAnotherProcessHasBegunIsNotSentAgain(t *testing.T) {
	fake, client := startFake(t)
	fake.content = bytes.Clone(fiveMiB[:3*mib+12345])
	submit(t, client, Bytes(fiveMiB), Submission{RequestID: "march"})
	if !bytes.Equal(fake.content, fiveMiB) || fake.received != 2 {
		t.Errorf("%d bytes in %d chunks", len(fake.content), fake.received)
	}
}

func TestProgressSaysWhatIsDurableAndHowMuchThereIs(t *testing.T) {
	_, client := startFake(t)
	var seen []SubmitProgress
	submit(t, client, Bytes(fiveMiB), Submission{
		Progress: func(told SubmitProgress) { seen = append(seen, told) }})
	var expected []SubmitProgress
	for done := range uint64(6) {
		expected = append(expected, SubmitProgress{7, done * mib, 5 * mib})
	}
	if !reflect.DeepEqual(seen, expected) {
		t.Errorf("seen: %v", seen)
	}
}

func TestTheSameContentHasTheSameRequestIDAndOnceReadContentANewOne(t *testing.T) {
	fake, client := startFake(t)
	path := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	once := func() Content { return Reader(onlyOnce{strings.NewReader("a\n")}) }
	for _, content := range []Content{Bytes([]byte("a\n")), File(path), Reader(strings.NewReader("a\n")),
		once(), once()} {
		fake.content = nil
		submit(t, client, content, Submission{})
	}
	var ids []string
	for _, header := range fake.headers {
		ids = append(ids, string(header.GetRequestId()))
	}
	if ids[0] != ids[1] || ids[0] != ids[2] || ids[3] == ids[4] || ids[3] == ids[0] {
		t.Errorf("ids: %v", ids)
	}
	if !regexp.MustCompile(`^job:[0-9a-f]{32}$`).MatchString(ids[0]) {
		t.Errorf("id: %s", ids[0])
	}
}

func TestASubmitSaysWhatItsBatchIsPromisedAndToWhichTraceItBelongs(t *testing.T) {
	fake, client := startFake(t)
	submit(t, client, Bytes([]byte("1\n")), Submission{SLA: time.Hour, Traceparent: "00-4b-00-01",
		Tracestate: "a=b", Tenant: "shop", HandlerVersion: "2"})
	header := fake.headers[0]
	if header.GetSla().AsDuration() != time.Hour || header.GetTraceparent() != "00-4b-00-01" ||
		header.GetTracestate() != "a=b" || header.GetTenant() != "shop" || header.GetHandlerVersion() != "2" ||
		header.GetSizeHint() != 2 {
		t.Errorf("header: %v", header)
	}
	fake.content = nil
	submit(t, client, Bytes([]byte("1\n")), Submission{})
	if header := fake.headers[1]; header.Sla != nil || header.HandlerVersion != nil {
		t.Errorf("header: %v", header)
	}
}

func TestJSONLinesAreARecordALine(t *testing.T) {
	fake, client := startFake(t)
	content, err := JSONLines([]map[string]any{{"customer": "Ada & Co", "amount": "1.10"}, {"customer": "Bob"}})
	if err != nil {
		t.Fatal(err)
	}
	submit(t, client, content, Submission{})
	if said := string(fake.content); said != `{"amount":"1.10","customer":"Ada & Co"}`+"\n"+`{"customer":"Bob"}`+"\n" {
		t.Errorf("content: %s", said)
	}
}

func TestAnEmptyContentIsSealedAtOnce(t *testing.T) {
	fake, client := startFake(t)
	submit(t, client, Bytes(nil), Submission{})
	if fake.received != 0 {
		t.Errorf("%d chunks", fake.received)
	}
}

func TestContentOfOneChunkDoesNotWaitUntilItsHeaderIsAccepted(t *testing.T) {
	fake, client := startFake(t)
	fake.late = true
	submit(t, client, Bytes(fiveMiB[:mib]), Submission{})
	if !bytes.Equal(fake.content, fiveMiB[:mib]) {
		t.Error("the content is another one")
	}
}

func TestContentOfOneChunkIsNotSentTwiceWhereItIsKnown(t *testing.T) {
	fake, client := startFake(t)
	fake.content = bytes.Clone(fiveMiB[:mib])
	submit(t, client, Bytes(fiveMiB[:mib]), Submission{})
	if !bytes.Equal(fake.content, fiveMiB[:mib]) || len(fake.headers) != 2 || fake.received != 0 {
		t.Errorf("%d headers, %d chunks", len(fake.headers), fake.received)
	}
}

// aheadReader notes when it is read further ahead of what is durable than it may be.
type aheadReader struct {
	read, durable atomic.Int64
	tooFar        atomic.Bool
}

func (r *aheadReader) Read(into []byte) (int, error) {
	if r.read.Load() >= r.durable.Load()+aheadBytes {
		r.tooFar.Store(true)
	}
	r.read.Add(int64(len(into)))
	return len(into), nil
}

// heldCall gives each request to the test.
type heldCall struct {
	musterv1.BatchService_SubmitClient
	requests chan *musterv1.SubmitRequest
}

func (c *heldCall) Send(request *musterv1.SubmitRequest) error {
	c.requests <- request
	return nil
}

func TestAnUploadDoesNotRunMoreThan8MiBAhead(t *testing.T) {
	reader := &aheadReader{}
	call := &heldCall{requests: make(chan *musterv1.SubmitRequest)}
	sender := newSender(keep(reader), &musterv1.SubmitHeader{}, call)
	ended := make(chan error, 1)
	go func() { ended <- sender.run(false) }()
	if (<-call.requests).GetHeader() == nil {
		t.Fatal("no header")
	}
	sender.hear(0, true)
	for range 8 {
		<-call.requests
	}
	reader.durable.Store(mib)
	sender.hear(mib, false)
	if offset := (<-call.requests).GetChunk().GetOffset(); offset != 8*mib {
		t.Errorf("offset %d", offset)
	}
	sender.end()
	if err := <-ended; err != nil || reader.tooFar.Load() || reader.read.Load() != 9*mib {
		t.Errorf("%v; %d bytes read", err, reader.read.Load())
	}
}

func TestContentThatCannotBeReadIsTheCallersError(t *testing.T) {
	_, client := startFake(t)
	broken := errors.New("the tape broke")
	content := Reader(io.MultiReader(bytes.NewReader(fiveMiB), &failingReader{broken}))
	if _, err := client.Submit(t.Context(), "job", content, Submission{}); !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
	if _, err := client.Submit(t.Context(), "job", File("/no/such/file"), Submission{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}

func TestContentThatIsCutOffIsNotTakenForTheWhole(t *testing.T) {
	fake, client := startFake(t)
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	if _, err := packer.Write(fiveMiB); err != nil {
		t.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	cutOff, err := gzip.NewReader(bytes.NewReader(packed.Bytes()[:packed.Len()/2]))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := client.Submit(t.Context(), "job", Reader(cutOff), Submission{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("batch %v of %d bytes, error: %v", batch, len(fake.content), err)
	}
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestABatchThatWasCancelledMeanwhileIsNotBegunAnew(t *testing.T) {
	fake, client := startFake(t)
	fake.breaks = []func(int) error{func(int) error {
		fake.batch = 8
		return breakOff(0)
	}}
	_, err := client.Submit(t.Context(), "job", Bytes(fiveMiB), Submission{})
	if failure := refused(t, err); failure.Reason != "BATCH_CANCELLED" || failure.Message != "batch 7 was cancelled" {
		t.Errorf("error: %+v", failure)
	}
}

func TestTroubleThatLastsLongerThanThePatienceComesOut(t *testing.T) {
	hasty := connect(t, "127.0.0.1:1", Options{Patience: -1})
	_, err := hasty.Submit(t.Context(), "job", Bytes(fiveMiB), Submission{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("error: %v", err)
	}
}

func TestAnInitiatorThatAcceptsAndGetsNoFurtherIsNoNews(t *testing.T) {
	fake, _ := startFake(t)
	fake.unsealed = status.Error(codes.Unavailable, "the disk fails")
	hasty := connect(t, fake.reports.address, Options{Patience: time.Millisecond})
	_, err := hasty.Submit(t.Context(), "job", Bytes([]byte("1\n")), Submission{})
	if failure := refused(t, err); failure.Code != codes.Unavailable || failure.Message != "the disk fails" {
		t.Errorf("error: %+v", failure)
	}
}

func TestTroubleBeginsAnewAfterNews(t *testing.T) {
	patience := &patience{limit: 0, log: slog.New(slog.DiscardHandler)}
	trouble := unavailable("about to stop")
	for range 2 {
		if err := patience.waitAfter(t.Context(), trouble, "the test"); err != nil {
			t.Fatal(err)
		}
		patience.refresh()
	}
	if err := patience.waitAfter(t.Context(), trouble, "the test"); err != nil {
		t.Fatal(err)
	}
	if err := patience.waitAfter(t.Context(), trouble, "the test"); err != error(trouble) {
		t.Errorf("error: %v", err)
	}
}

func TestTheEndOfItsContextEndsASubmit(t *testing.T) {
	fake, client := startFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	fake.breaks = []func(int) error{func(int) error {
		cancel()
		return breakOff(0)
	}}
	if _, err := client.Submit(ctx, "job", Bytes(fiveMiB), Submission{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func TestASubmitThatIsRefusedForNowSaysWhenToComeAgain(t *testing.T) {
	fake, client := startFake(t)
	fake.refuses = failure(t, codes.ResourceExhausted,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(5 * time.Minute)},
		&errdetails.ErrorInfo{Reason: "DRAIN_TOO_LONG", Domain: "muster",
			Metadata: map[string]string{"limit_seconds": "7200"}})
	_, err := client.Submit(t.Context(), "job", Bytes([]byte("a")), Submission{})
	found := refused(t, err)
	if found.Code != codes.ResourceExhausted || found.RetryAfter != 5*time.Minute ||
		found.Reason != "DRAIN_TOO_LONG" || found.Facts["limit_seconds"] != "7200" || len(fake.headers) != 1 {
		t.Errorf("error: %+v after %d calls", found, len(fake.headers))
	}
}

func failure(t *testing.T, code codes.Code, details ...protoadapt.MessageV1) error {
	t.Helper()
	said, err := status.New(code, "because").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return said.Err()
}

func TestAWatchGoesOnAfterTheLastRevisionThatItSaw(t *testing.T) {
	fake, client := startFake(t)
	fake.watches = [][]uint64{{3, 4}, {}, {9}}
	var seen []uint64
	for batch, err := range client.Watch(t.Context(), 7, 0) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, batch.Revision)
	}
	if !reflect.DeepEqual(seen, []uint64{3, 4, 9}) || !reflect.DeepEqual(fake.watched, []uint64{0, 4, 4}) {
		t.Errorf("seen %v after %v", seen, fake.watched)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	fake, client := startFake(t)
	fake.watches = append([][]uint64{{1}}, make([][]uint64, 1000)...)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Wait(ctx, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
}

// A context of five minutes was cut off after the 30 seconds that a call without one may take.
func TestADeadlineIsThatOfTheContextAndWithoutOneThatOfTheOptions(t *testing.T) {
	fake, client := startFake(t)
	fake.slow = 300 * time.Millisecond
	fake.fails = failure(t, codes.NotFound)
	client.options.Timeout = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.Get(ctx, 7); refused(t, err).Code != codes.NotFound {
		t.Errorf("with a deadline: %v", err)
	}
	if _, err := client.Get(t.Context(), 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without one: %v", err)
	}
}

func TestAnErrorCarriesTheFieldsThatAreRefused(t *testing.T) {
	fake, client := startFake(t)
	fake.fails = failure(t, codes.InvalidArgument, &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "batch", Description: "must not be 0"}}})
	_, err := client.Get(t.Context(), 7)
	found := refused(t, err)
	if found.Code != codes.InvalidArgument || found.Message != "because" ||
		!reflect.DeepEqual(found.Violations, []FieldViolation{{"batch", "must not be 0"}}) {
		t.Errorf("error: %+v", found)
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Error("grpc does not know the code")
	}
}

func TestAnAddressThatIsNotHostAndPortIsRefusedWithTheFormThatItMustHave(t *testing.T) {
	for _, address := range []string{"", "localhost", "localhost:", ":7700", "localhost:http", "localhost:0",
		"localhost:65536", "::1:7700", "[::1]", "http://localhost:7700", "me@localhost:7700", "local host:7700"} {
		_, ofServer := NewClient(address, Options{})
		_, ofProducer := NewEventProducer(address, "homes", Options{})
		_, ofProcessor := NewEventProcessor(address, "homes", "store", EventProcessorOptions{})
		refusals := []error{ofServer, ofProducer, ofProcessor}
		if address != "" {
			_, ofController := NewClient("localhost:7700", Options{Controller: address})
			refusals = append(refusals, ofController)
		}
		for i, err := range refusals {
			if err == nil || !strings.Contains(err.Error(), "must be HOST:PORT") {
				t.Errorf("%d of %q: %v", i, address, err)
			}
		}
	}
	for _, address := range []string{"localhost:7700", "127.0.0.1:1", "[::1]:65535", "mesh.example.org:7700"} {
		client, err := NewClient(address, Options{Controller: address})
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
}

func TestACertificateAndItsKeyGoTogether(t *testing.T) {
	if _, err := NewClient("localhost:7700", Options{Certificate: "me.pem"}); err == nil {
		t.Error("was taken")
	}
}
