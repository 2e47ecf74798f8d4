package main

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"

	"muster.example/totals/musterv1"
)

var columns = []string{"customer", "amount"}

func itemOf(name string, transactions ...[]string) *musterv1.HandlerItem {
	item := &musterv1.HandlerItem{Item: name}
	for i, fields := range transactions {
		item.Transactions = append(item.Transactions,
			&musterv1.HandlerTransaction{Line: int64(i + 2), Fields: fields})
	}
	return item
}

func TestParseCentsTakesExactAmountsAlone(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "12": 1200, "-0.05": -5, "+3.9": 390, "999999999999999.99": 99999999999999999,
	} {
		if got, err := parseCents(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".5", "5.", "0.001", "1e2", "1_000", " 1", "1\n", "NaN", "Infinity", "٣", "1000000000000000",
	} {
		if got, err := parseCents(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestFormatCentsGivesTwoDecimalsAlways(t *testing.T) {
	for cents, want := range map[int64]string{0: "0.00", 5: "0.05", -5: "-0.05", -12345: "-123.45"} {
		if got := formatCents(big.NewInt(cents)); got != want {
			t.Errorf("%d: %s, want %s", cents, got, want)
		}
	}
}

func TestTotalIsExactBeyond64Bits(t *testing.T) {
	transactions := make([][]string, 1000)
	for i := range transactions {
		transactions[i] = []string{"ada", "999999999999999.99"}
	}
	answer, err := total(context.Background(), itemOf("1/0", transactions...), columns)
	if err != nil {
		t.Fatal(err)
	}
	row := answer.GetOk().Groups[0].Rows[0]
	if got := strings.Join(row.Measures, " "); got != "999999999999999990.00 1000" {
		t.Error(got)
	}
}

func TestTotalStopsWhenNobodyWaits(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := total(ctx, itemOf("1/0", []string{"ada", "1"}), columns); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
