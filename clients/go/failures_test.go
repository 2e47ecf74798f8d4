// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

func TestNoMoreRecordsAreKeptThanOneAnswerHas(t *testing.T) {
	fake, client := startFake(t)
	fake.reports.rejections = []*musterv1.RejectedTransaction{{Item: 0, Line: 1}, {Item: 0, Line: 4},
		{Item: 2, Line: 9, RetriedIn: 8, RetryOfLine: 3}}
	var seen []string
	for failed, err := range client.Rejections(t.Context(), 7) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, string(failed.Record))
		if fake.records != len(seen) {
			t.Errorf("%d answers are read for %d transactions", fake.records, len(seen))
		}
		if last := failed.Line == 9; last != (failed.RetriedIn == 8) || last != (failed.RetryOfLine == 3) {
			t.Errorf("transaction: %+v", failed)
		}
	}
	if told := strings.Join(seen, ", "); told != "record 1, record 4, record 9" {
		t.Errorf("seen: %s", told)
	}
}

func TestTheOutputWaitsUntilAControllerIsListed(t *testing.T) {
	fake, client := startFake(t)
	fake.reports.unlisted = 2
	var seen []any
	for record, err := range client.Output(t.Context(), 7) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, record.Values["note"])
	}
	if len(seen) != 1 || seen[0] != "paid" || fake.reports.listed != 3 {
		t.Errorf("%v after %d lists", seen, fake.reports.listed)
	}
}

func TestAnOutputWithoutAControllerSaysSoInTheEnd(t *testing.T) {
	fake, client := startFake(t)
	fake.reports.unlisted = -1
	client.options.Patience = -1
	for _, err := range client.Output(t.Context(), 7) {
		if failed := refused(t, err); failed.Code != codes.Unavailable ||
			!strings.Contains(failed.Message, "has heard of no controller: start one") {
			t.Errorf("error: %+v", failed)
		}
	}
}

func TestAReportIsReadAlsoWithoutPatience(t *testing.T) {
	fake, _ := startFake(t)
	hasty := connect(t, fake.reports.address, Options{Patience: -1})
	rows, err := hasty.Report(t.Context(), 7, "by_customer")
	if err != nil || len(rows) != 1 || rows[0].Measures["revenue"].String() != "1.5" {
		t.Errorf("rows: %v, error: %v", rows, err)
	}
}

func TestClosingAClientEndsWhatWouldBeTriedAgain(t *testing.T) {
	fake, client := startFake(t)
	fake.watches = append([][]uint64{{1}}, make([][]uint64, 1000)...)
	for _, err := range client.Watch(t.Context(), 7, 0) {
		if err != nil {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, context.Canceled) {
				t.Errorf("error: %v", err)
			}
			return
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the watch has ended without an error")
}

func TestClosingAClientEndsWhatItReadsFromTheController(t *testing.T) {
	fake, client := startFake(t)
	fake.reports.endless = true
	for _, err := range client.Output(t.Context(), 7) {
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("error: %v", err)
			}
			return
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the output has ended without an error")
}
