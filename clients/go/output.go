// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"google.golang.org/grpc/codes"

	"muster.example/muster/internal/musterv1"
)

// As muster's processors count a record's bytes, and how many they take.
const (
	maxRecordBytes     = 64 << 10
	fieldOverheadBytes = 4
	maxWordBytes       = 1000 // of a reason, of which 512 are kept
)

// OutputKind says what the values of an output column are.
type OutputKind string

// The kinds, in the words of a job file.
const (
	TextOutput    OutputKind = "text"
	IntOutput     OutputKind = "int"
	DecimalOutput OutputKind = "decimal"
)

// OutputColumn is a column of a job's output records; Scale is how many decimals are kept.
type OutputColumn struct {
	Name  string
	Kind  OutputKind
	Scale int32
}

// Values are those of an output record by their columns: a string of a text column, an int64 of an int
// column, a decimal.Decimal of a decimal column, and nil where a number is absent.
type Values map[string]any

// OutputRecord is a record that the transaction at Line of the input gave.
type OutputRecord struct {
	Line   int64
	Values Values
}

// Output gives the records that the handler returned for a complete batch, in the order of the input, asked
// for page by page: about 1 MiB is kept at a time.
//
// NotFound: no such batch, or its job has no outputs. FailedPrecondition: the batch is not complete, or is
// cancelled. Aborted: a redrive has changed the batch; begin again. A page that is answered Unavailable, or for
// which no controller is listed, as while one restarts, is asked for again for Options.Patience.
func (c *Client) Output(ctx context.Context, batch uint64) iter.Seq2[OutputRecord, error] {
	return func(yield func(OutputRecord, error) bool) {
		patience := c.patience(c.options.Patience)
		request := &musterv1.GetOutputRequest{Batch: batch}
		for {
			err := c.atController(ctx, patience, func(stub musterv1.ReportServiceClient) error {
				return c.outputPages(ctx, stub, request, patience, yield)
			})
			if err == nil {
				return
			}
			if err := patience.waitAfter(ctx, fromRPC(err), "the output"); err != nil {
				yield(OutputRecord{}, err)
				return
			}
		}
	}
}

// outputPages gives what there is from the request's page on; nil: all was given, or no more is wanted.
func (c *Client) outputPages(ctx context.Context, stub musterv1.ReportServiceClient,
	request *musterv1.GetOutputRequest, patience *patience, yield func(OutputRecord, error) bool) error {
	for {
		asking, cancel := within(ctx, c.options.Timeout)
		page, err := stub.GetOutput(asking, request)
		cancel()
		if err != nil {
			return err
		}
		patience.refresh()
		columns := toColumns(page.GetColumns())
		for _, told := range page.GetRecords() {
			record, err := toRecord(columns, told)
			if err != nil {
				return err
			}
			if !yield(record, nil) {
				return nil
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

func toColumns(schema []*musterv1.OutputColumn) []OutputColumn {
	var columns []OutputColumn
	for _, column := range schema {
		kind := TextOutput
		switch column.GetType() {
		case musterv1.OutputType_OUTPUT_TYPE_INT:
			kind = IntOutput
		case musterv1.OutputType_OUTPUT_TYPE_DECIMAL:
			kind = DecimalOutput
		}
		columns = append(columns, OutputColumn{column.GetName(), kind, column.GetScale()})
	}
	return columns
}

func toRecord(columns []OutputColumn, told *musterv1.OutputRecord) (OutputRecord, error) {
	if len(told.GetFields()) != len(columns) {
		return OutputRecord{}, &Error{Code: codes.DataLoss, Message: "a record of the output is not as its columns"}
	}
	record := OutputRecord{told.GetLine(), Values{}}
	for place, column := range columns {
		value, err := toValue(column, told.GetFields()[place])
		if err != nil {
			return OutputRecord{}, &Error{Code: codes.DataLoss, Message: column.Name + " of the output is no number"}
		}
		record.Values[column.Name] = value
	}
	return record, nil
}

func toValue(column OutputColumn, field string) (any, error) {
	switch {
	case column.Kind == TextOutput:
		return field, nil
	case field == "":
		return nil, nil
	case column.Kind == IntOutput:
		return strconv.ParseInt(field, 10, 64)
	}
	return decimal.NewFromString(field)
}

// toFields panics where the program is wrong: other columns, other types. An *Unfit says which value its
// column does not take.
func toFields(columns []OutputColumn, values Values) ([]string, error) {
	if len(values) != len(columns) {
		panic(fmt.Sprintf("a record has a value for each of the %d output columns of the job, not %d",
			len(columns), len(values)))
	}
	var fields []string
	bytes := fieldOverheadBytes
	for _, column := range columns {
		value, named := values[column.Name]
		if !named {
			panic(fmt.Sprintf("a record has no value for the output column %s", column.Name))
		}
		field, err := toField(column, value)
		if err != nil {
			return nil, err
		}
		bytes += len(field) + fieldOverheadBytes
		fields = append(fields, field)
	}
	if bytes > maxRecordBytes {
		return nil, unfit("a record of %d bytes; at most %d", bytes, maxRecordBytes)
	}
	return fields, nil
}

// checkText is of a text that a message and a report must take.
func checkText(name, text string) error {
	if !utf8.ValidString(text) {
		return unfit("%s: not UTF-8 text", name)
	}
	if strings.Contains(text, "\x00") {
		return unfit("%s: a NUL is not allowed", name)
	}
	return nil
}

// toWords makes words that a message can have of a reason, the first of them: one that is too large ends a call.
// gRPC ends the whole call, too, for a text that is not UTF-8, such as one that was cut within a character.
func toWords(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxWordBytes)], "\uFFFD")
}

func toField(column OutputColumn, value any) (string, error) {
	if column.Kind == TextOutput {
		text, is := value.(string)
		if !is {
			panic(fmt.Sprintf("%s: a %T is no string", column.Name, value))
		}
		return text, checkText(column.Name, text)
	}
	var number decimal.Decimal
	switch value := value.(type) {
	case nil:
		return "", nil
	case int:
		number = decimal.NewFromInt(int64(value))
	case int64:
		number = decimal.NewFromInt(value)
	case decimal.Decimal:
		number = value
	default:
		panic(fmt.Sprintf("%s: a %T is none of int, int64, decimal.Decimal and nil", column.Name, value))
	}
	measure := Measure{column.Name, column.Kind == IntOutput, column.Scale}
	units, err := scaled(measure, number)
	if err != nil {
		return "", err
	}
	if !fits(measure, units) {
		return "", unfit("%s: overflows", column.Name)
	}
	return decimal.NewFromBigInt(units, -column.Scale).StringFixed(column.Scale), nil
}
