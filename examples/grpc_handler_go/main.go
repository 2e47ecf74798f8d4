// A handler that is a server: adds up what each customer spent, as ../grpc_handler/server.py does, which has
// no package and so shows the protocol. Here the package of clients/go keeps it: it works on several items at
// a time, ends the context of those that are abandoned, and answers what it has when it is told to end.
//
//	clients/go/make_module build/muster_go                # once, in the clone: makes the package
//	cd examples/grpc_handler_go && go run .               # listens on localhost:7800
//	muster run examples/grpc_handler/job.yaml --input examples/grpc_handler/purchases.csv
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"time"

	"github.com/shopspring/decimal"
	"muster.example/muster"
)

var amountForm = regexp.MustCompile(`^[-+]?[0-9]{1,15}(\.[0-9]{1,2})?$`)

func total(ctx context.Context, item *muster.Item, results *muster.Results) error {
	for _, purchase := range item.Transactions {
		if err := ctx.Err(); err != nil {
			return err // no one waits for the answer any more
		}
		text := purchase.Get("amount")
		if !amountForm.MatchString(text) {
			results.Reject(purchase.Line, fmt.Sprintf("amount: not an amount: '%s'", text))
			continue
		}
		amount, err := decimal.NewFromString(text)
		if err != nil {
			return err
		}
		err = results.Add(muster.Rows{"by_customer": {
			Keys:     map[string]string{"customer": purchase.Get("customer")},
			Measures: map[string]decimal.Decimal{"spent": amount, "purchases": muster.Whole(1)},
		}})
		if err != nil { // a key that is too long, a sum that does not fit
			results.Reject(purchase.Line, err.Error())
		}
	}
	return nil
}

func main() {
	address := "localhost:7800"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	// The version is to be changed whenever the results may change; the job file says the same.
	server, err := muster.ServeHandler(total, muster.HandlerOptions{Name: "totals", Version: "1", Listen: address,
		Columns: []string{"customer", "amount"}, Concurrency: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", server.Address())
	if err := server.Run(context.Background(), 30*time.Second); err != nil {
		log.Fatal(err)
	}
}
