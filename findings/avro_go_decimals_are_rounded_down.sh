#!/usr/bin/env bash
# hamba/avro 2.31.0 and linkedin/goavro 2.15.0 (for Go): a decimal with more digits than its scale is rounded towards
# minus infinity. 0.005 is 0.00, and -0.005 is -0.01. fastavro 1.13.1 (for Python) refuses it.
#
# Guess: an error, for the schema says how many digits there are; hamba has one for too many digits before the point.
# Or one rounding for both signs.
# Seen: with a scale of 2 both write 1.009 as 1.00 and -1.001 as -1.01, and a third as 0.33 and -0.34.
#
# Who it hurts: ledgers that put amounts and their corrections into files: a booking of 1.005 and its reversal leave a
# cent, and all sums are too low, never too high.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check fastavro==1.13.1
cat > refused.py << 'PYTHON'
import io
from decimal import Decimal
import fastavro

SCHEMA = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
try:
    fastavro.schemaless_writer(io.BytesIO(), SCHEMA, Decimal("1.009"))
except ValueError as error:
    print(error)
PYTHON
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"math/big"

	"github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

const schema = `{"type": "record", "name": "Line", "fields": [{"name": "amount",
	"type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}`

type line struct {
	Amount *big.Rat `avro:"amount"`
}

func withHamba(amount *big.Rat) string {
	written, err := avro.Marshal(avro.MustParse(schema), line{amount})
	if err != nil {
		return err.Error()
	}
	var read line
	if err := avro.Unmarshal(avro.MustParse(schema), written, &read); err != nil {
		return err.Error()
	}
	return read.Amount.FloatString(3)
}

func withGoavro(amount *big.Rat) string {
	codec, err := goavro.NewCodec(schema)
	if err != nil {
		return err.Error()
	}
	written, err := codec.BinaryFromNative(nil, map[string]any{"amount": amount})
	if err != nil {
		return err.Error()
	}
	read, _, err := codec.NativeFromBinary(written)
	if err != nil {
		return err.Error()
	}
	return read.(map[string]any)["amount"].(*big.Rat).FloatString(3)
}

func main() {
	for _, text := range []string{"0.005", "-0.005", "1.009", "-1.001", "1/3", "-1/3"} {
		amount, _ := new(big.Rat).SetString(text)
		fmt.Print(text, " ", withHamba(amount), " ", withGoavro(amount), "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/hamba/avro/v2@v2.31.0 github.com/linkedin/goavro/v2@v2.15.0; } > log 2>&1 ||
  { cat log && exit 1; }
seen="$(go run .)$(venv/bin/python refused.py)"
echo "hamba/avro 2.31.0, goavro 2.15.0 and fastavro 1.13.1: $seen"
[ "$seen" = "0.005 0.000 0.000; -0.005 -0.010 -0.010; 1.009 1.000 1.000; -1.001 -1.010 -1.010; \
1/3 0.330 0.330; -1/3 -0.340 -0.340; Scale provided in schema does not match the decimal" ]
