// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"muster.example/muster/internal/musterv1"
)

// As muster's processors take them.
const (
	maxKeyBytes = 1024
	maxDigits   = 38
)

// Unfit is a number or key that the job's groups do not take; it says why as a rejection would.
type Unfit struct{ Reason string }

func (u *Unfit) Error() string { return u.Reason }

func unfit(form string, values ...any) error { return &Unfit{fmt.Sprintf(form, values...)} }

// Whole is n as a measure.
func Whole(n int64) decimal.Decimal { return decimal.NewFromInt(n) }

// Rows are what a transaction counts in: a row of each group that is named.
type Rows map[string]Row

// Results adds up an item. For one goroutine; each item has its own.
type Results struct {
	groups   map[string]*Group
	columns  []OutputColumn
	lines    map[int64]bool
	sums     map[string]map[string]*sum
	outputs  []*musterv1.OutputRecord
	rejected map[int64]string
}

// sum is a row; its measures are in the group's order, as whole numbers of its last decimal.
type sum struct {
	keys     []string
	measures []*big.Int
}

func newResults(job *HandledJob, transactions []Transaction) *Results {
	r := &Results{groups: job.Groups, columns: job.Outputs, lines: map[int64]bool{},
		sums: map[string]map[string]*sum{}, rejected: map[int64]string{}}
	for _, transaction := range transactions {
		r.lines[transaction.Line] = true
	}
	return r
}

// Add adds a row to each of these groups, or to none.
//
// An *Unfit, to be told by Reject: a measure with more decimals than its group keeps, a sum that does not
// fit, a key of more than 1,024 bytes, or that is not UTF-8 or has a NUL. Rows that are none of the job are a mistake of the program, and
// panic: the item is then tried again, and its error says why.
func (r *Results) Add(rows Rows) error {
	after := map[string]*sum{}
	for name, row := range rows {
		added, err := r.with(name, row)
		if err != nil {
			return err
		}
		after[name] = added
	}
	for name, added := range after {
		if r.sums[name] == nil {
			r.sums[name] = map[string]*sum{}
		}
		r.sums[name][joined(added.keys)] = added
	}
	return nil
}

// Reject says that the transaction that begins at line does not count.
func (r *Results) Reject(line int64, reason string) {
	if !r.lines[line] {
		panic(fmt.Sprintf("no transaction begins at line %d", line))
	}
	if _, already := r.rejected[line]; !already {
		r.rejected[line] = toWords(reason)
	}
}

// Output returns a record for the transaction that begins at line: a value for each of the job's output
// columns. A text is a string; a number is an int, int64 or decimal.Decimal, or nil where it is absent. The
// records of lines that are rejected are left out.
//
// An *Unfit, to be told by Reject: a number that its column does not take, text that is not UTF-8 or has a
// NUL, a record above 64 KiB. A record that is none of the job panics, as in Add.
func (r *Results) Output(line int64, values Values) error {
	if !r.lines[line] {
		panic(fmt.Sprintf("no transaction begins at line %d", line))
	}
	fields, err := toFields(r.columns, values)
	if err != nil {
		return err
	}
	r.outputs = append(r.outputs, &musterv1.OutputRecord{Line: line, Fields: fields})
	return nil
}

func (r *Results) with(name string, row Row) (*sum, error) {
	group := r.groups[name]
	if group == nil || len(row.Keys) != len(group.Keys) || len(row.Measures) != len(group.Measures) {
		panic(fmt.Sprintf("%s is no group of the job, or its row has other keys or measures", name))
	}
	after := &sum{}
	for _, key := range group.Keys {
		value, named := row.Keys[key]
		if !named {
			panic(fmt.Sprintf("a row of %s has no key %s", name, key))
		}
		if len(value) > maxKeyBytes {
			return nil, unfit("%s: longer than %d bytes", key, maxKeyBytes)
		}
		if err := checkText(key, value); err != nil {
			return nil, err
		}
		after.keys = append(after.keys, value)
	}
	before := r.sums[name][joined(after.keys)]
	for place, measure := range group.Measures {
		more, named := row.Measures[measure.Name]
		if !named {
			panic(fmt.Sprintf("a row of %s has no measure %s", name, measure.Name))
		}
		added, err := scaled(measure, more)
		if err != nil {
			return nil, err
		}
		if before != nil {
			added.Add(added, before.measures[place])
		}
		if !fits(measure, added) {
			return nil, unfit("%s: overflows", measure.Name)
		}
		after.measures = append(after.measures, added)
	}
	return after, nil
}

// joined tells any two lists of keys apart: each key goes behind its length.
func joined(keys []string) string {
	var all strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&all, "%d:%s", len(key), key)
	}
	return all.String()
}

// scaled gives number in units of the measure's last decimal. Numbers of any exponent may come, so
// it does not write them out before it knows that they are short.
func scaled(measure Measure, number decimal.Decimal) (*big.Int, error) {
	units, exponent := number.Coefficient(), int64(number.Exponent())+int64(measure.Scale)
	if units.Sign() == 0 {
		return units, nil
	}
	digits := int64(len(new(big.Int).Abs(units).String()))
	if digits+exponent > 2*maxDigits {
		return nil, unfit("%s: overflows", measure.Name)
	}
	if exponent < 0 {
		divisor, rest := big.NewInt(10), new(big.Int)
		if -exponent >= digits { // fewer zeros than decimals
			rest.SetInt64(1)
		} else {
			divisor.Exp(divisor, big.NewInt(-exponent), nil)
			units.QuoRem(units, divisor, rest)
		}
		if rest.Sign() != 0 {
			return nil, unfit("%s: needs more than %d decimals", measure.Name, measure.Scale)
		}
		return units, nil
	}
	return units.Mul(units, new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)), nil
}

var tooLarge = new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil)

func fits(measure Measure, units *big.Int) bool {
	if measure.Whole {
		return units.IsInt64()
	}
	return units.CmpAbs(tooLarge) < 0
}

// toProto says the same of the same results, in the same order.
func (r *Results) toProto() *musterv1.HandlerResult {
	result := &musterv1.HandlerResult{}
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		partial := &musterv1.GroupPartial{Group: name}
		for _, keys := range slices.Sorted(maps.Keys(r.sums[name])) {
			row := r.sums[name][keys]
			told := &musterv1.PartialRow{Keys: row.keys}
			for place, measure := range r.groups[name].Measures {
				number := decimal.NewFromBigInt(row.measures[place], -measure.Scale)
				told.Measures = append(told.Measures, number.StringFixed(measure.Scale))
			}
			partial.Rows = append(partial.Rows, told)
		}
		result.Groups = append(result.Groups, partial)
	}
	for _, record := range r.outputs {
		if _, rejected := r.rejected[record.GetLine()]; !rejected {
			result.Outputs = append(result.Outputs, record)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(r.rejected)) {
		result.Rejected = append(result.Rejected, &musterv1.Rejection{Line: line, Reason: r.rejected[line]})
	}
	return result
}
