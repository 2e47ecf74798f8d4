package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	itemLines     = 500
	priceDecimals = 18
	maxDigits     = 38
	timeLayout    = "2006-01-02 15:04:05"
	digits        = "0123456789"
	zeros         = "000000000000000000" // As many as priceDecimals.
)

var (
	columns = []string{"Quantity", "UnitPrice", "InvoiceDate", "CustomerID", "Country"}
	tooFine = new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil) // Revenue is in thousandths.
	limit   = new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil)
)

// The items of a file. Each is CSV by itself: the header's line, and lines of its own.
func retailItems(path string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		text, err := os.ReadFile(path)
		check(err)
		header, rest := cutRecords(text, 1)
		for len(rest) > 0 {
			var lines []byte
			lines, rest = cutRecords(rest, itemLines)
			if !yield(slices.Concat(header, lines)) {
				return
			}
		}
	}
}

// The first records and the rest. A line feed within quotes ends none.
func cutRecords(text []byte, records int) ([]byte, []byte) {
	end, quoted := 0, false
	for records > 0 && end < len(text) {
		line, _, _ := bytes.Cut(text[end:], []byte("\n"))
		quoted = quoted != (bytes.Count(line, []byte(`"`))%2 == 1)
		if !quoted {
			records--
		}
		end = min(end+len(line)+1, len(text))
	}
	return text[:end], text[end:]
}

// What a worker makes of an item.
type partial struct {
	Transactions   int             `json:"transactions"`
	Rejected       int             `json:"rejected"`
	ByCountryMonth sums[[2]string] `json:"by_country_month"`
	ByCustomer     sums[[1]string] `json:"by_customer"`
}

type keys interface{ [1]string | [2]string }

type sums[K keys] map[K]*sum

type sum struct {
	revenue, units big.Int
	lines          int
}

func (all sums[K]) add(key K, revenue, units *big.Int) {
	row := all[key]
	if row == nil {
		row = &sum{}
		all[key] = row
	}
	row.revenue.Add(&row.revenue, revenue)
	row.units.Add(&row.units, units)
	row.lines++
}

// Rows of keys, revenue in thousandths, units and lines.
func (all sums[K]) MarshalJSON() ([]byte, error) {
	rows := make([][]any, 0, len(all))
	for key, row := range all {
		rows = append(rows, []any{key, &row.revenue, &row.units, row.lines})
	}
	return json.Marshal(rows)
}

// The same lines are rejected as by examples/retail/handler.cc.
func bill(item []byte) ([]byte, error) {
	records := csv.NewReader(bytes.NewReader(item))
	records.ReuseRecord = true
	records.FieldsPerRecord = -1
	places, width, err := findColumns(records)
	if err != nil {
		return nil, err
	}
	result := partial{ByCountryMonth: sums[[2]string]{}, ByCustomer: sums[[1]string]{}}
	for {
		fields, err := records.Read()
		if errors.Is(err, io.EOF) {
			return json.Marshal(result)
		}
		if err != nil {
			return nil, err
		}
		result.Transactions++
		if len(fields) != width || !result.add(fields, places) {
			result.Rejected++
		}
	}
}

// Where the header has what is billed, and how wide it is.
func findColumns(records *csv.Reader) ([]int, int, error) {
	header, err := records.Read()
	if err != nil {
		return nil, 0, err
	}
	places := make([]int, len(columns))
	for i, name := range columns {
		if places[i] = slices.Index(header, name); places[i] < 0 {
			return nil, 0, fmt.Errorf("no column %s", name)
		}
	}
	return places, len(header), nil
}

// False when the line is to be rejected.
func (p *partial) add(fields []string, places []int) bool {
	quantity, price, date := fields[places[0]], fields[places[1]], fields[places[2]]
	units, err := strconv.ParseInt(quantity, 10, 64)
	if err != nil || !isTime(date) {
		return false
	}
	revenue := multiply(units, price)
	if revenue == nil {
		return false
	}
	whole := big.NewInt(units)
	p.ByCountryMonth.add([2]string{fields[places[4]], date[:len("2006-01")]}, revenue, whole)
	p.ByCustomer.add([1]string{fields[places[3]]}, revenue, whole)
	return true
}

// Parse alone would take an hour of one digit, and fractions of a second.
func isTime(text string) bool {
	_, err := time.Parse(timeLayout, text)
	return err == nil && len(text) == len(timeLayout)
}

// Thousandths, or nil when the price is none or the product has more decimals or digits than fit.
func multiply(units int64, price string) *big.Int {
	whole, fraction, _ := strings.Cut(price, ".")
	endsInDigit := price != "" && strings.IndexByte(digits, price[len(price)-1]) >= 0
	if !endsInDigit || len(fraction) > priceDecimals ||
		len(strings.TrimLeft(whole+fraction, "+-0")) > maxDigits {
		return nil
	}
	product, isNumber := new(big.Int).SetString(whole+fraction+zeros[len(fraction):], 10)
	if !isNumber {
		return nil
	}
	product.Mul(product, big.NewInt(units))
	revenue, rest := product.QuoRem(product, tooFine, new(big.Int))
	if rest.Sign() != 0 || revenue.CmpAbs(limit) >= 0 {
		return nil
	}
	return revenue
}
