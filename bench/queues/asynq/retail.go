// SPDX-License-Identifier: Apache-2.0

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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	itemLines       = 500
	priceDecimals   = 18
	revenueDecimals = 3
	maxDigits       = 38
	timeLayout      = "2006-01-02 15:04:05"
	remembered      = 65_536
)

var (
	columns       = []string{"Quantity", "UnitPrice", "InvoiceDate", "CustomerID", "Country"}
	decimalNumber = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]{1,18})?|\.[0-9]{1,18})$`)
)

// The items of a file. Each item is CSV by itself: the header line, and its own lines.
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

// Splits a text after its first records. A line feed within quotes does not end a record.
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

// A worker's result for an item.
type partial struct {
	Transactions   int             `json:"transactions"`
	Rejected       int             `json:"rejected"`
	ByCountryMonth sums[[2]string] `json:"by_country_month"`
	ByCustomer     sums[[1]string] `json:"by_customer"`
}

type keys interface{ [1]string | [2]string }

type sums[K keys] map[K]*sum

type amounts struct{ revenue, units *big.Int }

type sum struct {
	revenue, units big.Int
	lines          int
}

func (all sums[K]) add(key K, billed *amounts) {
	row := all[key]
	if row == nil {
		row = &sum{}
		all[key] = row
	}
	row.revenue.Add(&row.revenue, billed.revenue)
	row.units.Add(&row.units, billed.units)
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

// Rejects the same lines as examples/retail/handler.cc.
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

// Returns the places of the billed columns in the header, and the header's width.
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

// Returns false when the line is to be rejected.
func (p *partial) add(fields []string, places []int) bool {
	pair := [2]string{fields[places[0]], fields[places[1]]}
	billed, month := amountsOf.answer(pair), monthOf.answer(fields[places[2]])
	if billed == nil || month == "" {
		return false
	}
	p.ByCountryMonth.add([2]string{fields[places[4]], month}, billed)
	p.ByCustomer.add([1]string{fields[places[3]]}, billed)
	return true
}

// Remembers the answers to earlier questions.
type remembering[K comparable, V any] struct {
	ask     func(K) V
	mutex   sync.RWMutex
	answers map[K]V
}

func (r *remembering[K, V]) answer(question K) V {
	r.mutex.RLock()
	answer, known := r.answers[question]
	r.mutex.RUnlock()
	if known {
		return answer
	}
	answer = r.ask(question)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.answers == nil || len(r.answers) == remembered {
		r.answers = map[K]V{}
	}
	r.answers[question] = answer
	return answer
}

var (
	amountsOf = remembering[[2]string, *amounts]{ask: multiply}
	monthOf   = remembering[string, string]{ask: parseMonth}
)

// Returns nil when the quantity or the price is not valid.
func multiply(pair [2]string) *amounts {
	units, err := strconv.ParseInt(pair[0], 10, 64)
	if err != nil || !decimalNumber.MatchString(pair[1]) {
		return nil
	}
	whole, fraction, _ := strings.Cut(pair[1], ".")
	padding := strings.Repeat("0", priceDecimals-len(fraction))
	product, _ := new(big.Int).SetString(whole+fraction+padding, 10)
	product.Mul(product, big.NewInt(units))
	thousandth := powerOfTen(priceDecimals - revenueDecimals)
	revenue, tooFine := product.QuoRem(product, thousandth, new(big.Int))
	// The product may have as many digits as it could have without the cut to thousandths.
	cut := max(len(strings.TrimRight(fraction, "0"))-revenueDecimals, 0)
	if len(strings.TrimLeft(whole+fraction, "+-0")) > maxDigits || tooFine.Sign() != 0 ||
		revenue.CmpAbs(powerOfTen(maxDigits-cut)) >= 0 {
		return nil
	}
	return &amounts{revenue, big.NewInt(units)}
}

func powerOfTen(exponent int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
}

// Returns "" when the date is not valid. Parse alone would accept fractions of a second.
func parseMonth(date string) string {
	_, err := time.Parse(timeLayout, date)
	if err != nil || len(date) != len(timeLayout) {
		return ""
	}
	return date[:len("2006-01")]
}
