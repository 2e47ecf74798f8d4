// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/shopspring/decimal"
	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

// Row is a row of a group: keys that tell it apart, and its measures, exact.
type Row struct {
	Keys     map[string]string
	Measures map[string]decimal.Decimal
}

// Measure is a number of a group's rows; Scale is how many decimals are kept, 0 for whole numbers.
type Measure struct {
	Name  string
	Whole bool
	Scale int32
}

// Group is a table of a job's report.
type Group struct {
	Name     string
	Keys     []string
	Measures []Measure
}

// Receipt is the proof of where every transaction went: lines "name value", and their SHA-256.
type Receipt struct{ Text, Checksum string }

// Report gives all rows of a group, as of one moment, in the byte order of their keys.
//
// NotFound: no such batch, or no such group. Unavailable: no controller is there.
func (c *Client) Report(ctx context.Context, batch uint64, group string) ([]Row, error) {
	var rows []Row
	err := c.atController(ctx, c.patience(c.options.Timeout), func(stub musterv1.ReportServiceClient) error {
		// A long report takes longer than other calls; who is not patient still waits as for those.
		reading, cancel := within(ctx, max(c.options.Timeout, c.options.Patience))
		defer cancel()
		stream, err := stub.GetReport(reading, &musterv1.GetReportRequest{Batch: batch, Group: group})
		if err != nil {
			return err
		}
		var schema *Group
		for {
			part, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if part.GetSchema() != nil {
				schema = toGroup(part.GetSchema())
			}
			for _, row := range part.GetRows().GetRows() {
				told, err := toRow(schema, row)
				if err != nil {
					return err
				}
				rows = append(rows, told)
			}
		}
	})
	if err != nil {
		return nil, fromRPC(err)
	}
	return rows, nil
}

// Receipt gives where every transaction went; that of a cancelled batch has "state cancelled" and says
// what is counted so far.
//
// FailedPrecondition: the batch is neither complete nor cancelled. DataLoss: the text does not have its
// checksum.
func (c *Client) Receipt(ctx context.Context, batch uint64) (*Receipt, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.batches.GetReceipt(ctx, &musterv1.GetReceiptRequest{Batch: batch})
	if err != nil {
		return nil, fromRPC(err)
	}
	sum := sha256.Sum256([]byte(response.GetText()))
	if hex.EncodeToString(sum[:]) != response.GetChecksum() {
		return nil, &Error{Code: codes.DataLoss, Message: "the receipt does not have its checksum"}
	}
	return &Receipt{response.GetText(), response.GetChecksum()}, nil
}

// atController asks the controller that has the report, by a connection of its own; patience is for a
// controller that is not listed.
func (c *Client) atController(ctx context.Context, patience *patience,
	ask func(musterv1.ReportServiceClient) error) error {
	address := c.options.Controller
	if address == "" {
		found, err := c.findController(ctx, patience)
		if err != nil {
			return err
		}
		address = found
	}
	channel, err := open(address, c.files())
	if err != nil {
		return unavailable(err.Error())
	}
	done := make(chan struct{})
	defer close(done)
	defer func() { _ = channel.Close() }() // all was heard
	go func() {
		select {
		case <-c.closed:
			_ = channel.Close() // what still runs says so
		case <-done:
		}
	}()
	return ask(musterv1.NewReportServiceClient(channel))
}

// findController: an initiator that was just started hears of it within some seconds.
func (c *Client) findController(ctx context.Context, patience *patience) (string, error) {
	request := &musterv1.ListInstancesRequest{Role: musterv1.Role_ROLE_CONTROLLER}
	for {
		asking, cancel := within(ctx, c.options.Timeout)
		response, err := c.mesh.ListInstances(asking, request)
		cancel()
		if err != nil {
			return "", fromRPC(err)
		}
		for _, instance := range response.GetInstances() {
			if address := instance.GetInfo().GetAddress(); address != "" && !instance.GetLeaving() {
				return address, nil
			}
		}
		trouble := unavailable(
			"the initiator has heard of no controller: start one, or name the one that has the report")
		if err := patience.waitAfter(ctx, trouble, "the report"); err != nil {
			return "", err
		}
	}
}

func toGroup(schema *musterv1.GroupSchema) *Group {
	group := &Group{Name: schema.GetName(), Keys: schema.GetKeys()}
	for _, measure := range schema.GetMeasures() {
		group.Measures = append(group.Measures, Measure{measure.GetName(),
			measure.GetType() == musterv1.MeasureType_MEASURE_TYPE_INT, measure.GetScale()})
	}
	return group
}

func toRow(group *Group, row *musterv1.PartialRow) (Row, error) {
	if group == nil || len(row.GetKeys()) != len(group.Keys) || len(row.GetMeasures()) != len(group.Measures) {
		return Row{}, &Error{Code: codes.DataLoss, Message: "a row of the report is not as its group"}
	}
	told := Row{map[string]string{}, map[string]decimal.Decimal{}}
	for place, key := range group.Keys {
		told.Keys[key] = row.GetKeys()[place]
	}
	for place, measure := range group.Measures {
		number, err := decimal.NewFromString(row.GetMeasures()[place])
		if err != nil {
			return Row{}, &Error{Code: codes.DataLoss, Message: "a measure of the report is no number"}
		}
		told.Measures[measure.Name] = number
	}
	return told, nil
}
