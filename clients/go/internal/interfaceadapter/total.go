// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/shopspring/decimal"

	"muster.example/muster"
)

// total is the handler of the tests, as the other adapters serve it.
func total(_ context.Context, item *muster.Item, results *muster.Results) error {
	for _, transaction := range item.Transactions {
		customer := transaction.Get("customer")
		switch {
		case customer == "retry" && item.Attempt == 1:
			return muster.Retry("once more", time.Millisecond)
		case customer == "dead":
			return muster.Dead("it never works")
		case customer == "gate":
			if _, err := os.ReadFile(item.Job.Parameters["GATE"]); err != nil {
				return err
			}
		}
		spent, err := decimal.NewFromString(transaction.Get("amount"))
		if err != nil {
			results.Reject(transaction.Line, "amount: not a number")
			continue
		}
		if len(item.Job.Outputs) > 0 {
			values := muster.Values{"customer": customer, "paid": nil, "cents": spent.Shift(2)}
			if !spent.IsZero() {
				values["paid"] = spent
			}
			if err := results.Output(transaction.Line, values); err != nil {
				results.Reject(transaction.Line, err.Error())
				continue
			}
		}
		err = results.Add(muster.Rows{"by_customer": {
			Keys:     map[string]string{"customer": customer},
			Measures: map[string]decimal.Decimal{"spent": spent, "purchases": muster.Whole(1)},
		}})
		if err != nil {
			results.Reject(transaction.Line, err.Error())
		}
	}
	return nil
}
