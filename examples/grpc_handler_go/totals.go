package main

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster.example/totals/musterv1"
)

// version is to be changed whenever the results may change; the job file says the same.
const version = "1"

var amountForm = regexp.MustCompile(`^[-+]?[0-9]{1,15}(\.[0-9]{1,2})?$`)

// parseCents gives the exact amount in text, in hundredths.
func parseCents(text string) (int64, error) {
	if !amountForm.MatchString(text) {
		return 0, fmt.Errorf("amount: not an amount: '%s'", text)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	return strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64) // 17 digits: always fits
}

func formatCents(cents *big.Int) string {
	sign := ""
	if cents.Sign() < 0 {
		sign = "-"
	}
	digits := fmt.Sprintf("%03d", new(big.Int).Abs(cents))
	point := len(digits) - 2
	return sign + digits[:point] + "." + digits[point:]
}

// canWorkOn tells whether jobs with such columns have all that is added up here.
func canWorkOn(columns []string) bool {
	return slices.Contains(columns, "customer") && slices.Contains(columns, "amount")
}

// spending is what one customer spent. Many amounts together can be beyond 64 bits.
type spending struct {
	cents     big.Int
	purchases int64
}

// total answers a work item: a row per customer, and the lines that make no sense. It fails only
// when nobody waits for the answer any more.
func total(ctx context.Context, item *musterv1.HandlerItem, columns []string) (*musterv1.HandlerAnswer, error) {
	customer, amount := slices.Index(columns, "customer"), slices.Index(columns, "amount")
	sums := map[string]*spending{}
	result := &musterv1.HandlerResult{}
	for _, transaction := range item.Transactions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cents, err := parseCents(transaction.Fields[amount])
		if err != nil {
			result.Rejected = append(result.Rejected,
				&musterv1.Rejection{Line: transaction.Line, Reason: err.Error()})
			continue
		}
		name := transaction.Fields[customer]
		if sums[name] == nil {
			sums[name] = &spending{}
		}
		sums[name].cents.Add(&sums[name].cents, big.NewInt(cents))
		sums[name].purchases++
	}
	group := &musterv1.GroupPartial{Group: "by_customer"}
	for name, spent := range sums {
		group.Rows = append(group.Rows, &musterv1.PartialRow{
			Keys:     []string{name},
			Measures: []string{formatCents(&spent.cents), strconv.FormatInt(spent.purchases, 10)},
		})
	}
	result.Groups = []*musterv1.GroupPartial{group}
	return &musterv1.HandlerAnswer{Item: item.Item, Outcome: &musterv1.HandlerAnswer_Ok{Ok: result}}, nil
}
