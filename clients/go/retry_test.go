// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"reflect"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.example/muster/internal/musterv1"
)

func retriedIn(batch uint64, transactions int64, more bool) *musterv1.RetryRejectionsResponse {
	return &musterv1.RetryRejectionsResponse{More: more, Retries: []*musterv1.RetriedBatch{
		{Batch: batch, Transactions: transactions, IsNew: true}}}
}

func TestAllThatWasRejectedIsRetriedUntilNothingIsLeft(t *testing.T) {
	fake, client := startFake(t)
	fake.retries = []any{retriedIn(9, 50_000, true), retriedIn(10, 1, false)}
	retried, err := client.RetryAllRejections(t.Context(), 7)
	if err != nil || !reflect.DeepEqual(retried, []RetriedBatch{{9, 50_000, true}, {10, 1, true}}) {
		t.Errorf("%v; %v", retried, err)
	}
	for _, request := range fake.retried {
		if request.GetBatch() != 7 || !request.GetAll() || len(request.GetLines()) != 0 {
			t.Errorf("request: %v", request)
		}
	}
}

func TestAThousandLinesAreRetriedWithEachCall(t *testing.T) {
	fake, client := startFake(t)
	fake.retries = []any{retriedIn(9, 1000, false), retriedIn(10, 1, false)}
	lines := make([]int64, 1001)
	for place := range lines {
		lines[place] = int64(place + 1)
	}
	retried, err := client.RetryRejections(t.Context(), 7, lines)
	if err != nil || len(retried) != 2 {
		t.Fatalf("%v; %v", retried, err)
	}
	if first, second := fake.retried[0].GetLines(), fake.retried[1].GetLines(); len(first) != 1000 ||
		!reflect.DeepEqual(second, []int64{1001}) || fake.retried[0].GetAll() {
		t.Errorf("%d lines, then %v", len(first), second)
	}
}

func TestWhatWasRetriedBeforeAFailureComesWithIt(t *testing.T) {
	fake, client := startFake(t)
	fake.retries = []any{retriedIn(9, 50_000, true), status.Error(codes.ResourceExhausted, "too much waits")}
	_, err := client.RetryAllRejections(t.Context(), 7)
	if failed := refused(t, err); failed.Code != codes.ResourceExhausted ||
		!reflect.DeepEqual(failed.Retried, []RetriedBatch{{9, 50_000, true}}) {
		t.Errorf("error: %+v", failed)
	}
}

func TestNoLineIsNotTakenForAll(t *testing.T) {
	fake, client := startFake(t)
	_, err := client.RetryRejections(t.Context(), 7, nil)
	if failed := refused(t, err); failed.Code != codes.InvalidArgument || len(fake.retried) != 0 {
		t.Errorf("error: %+v after %d calls", failed, len(fake.retried))
	}
}
