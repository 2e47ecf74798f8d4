#!/usr/bin/env bash
# hcl-to-json 0.1.1 (HCL for JavaScript): a text of digits in quotes is a number, and a number in a list is a text.
# "007" is 7, and [1, 2] is ["1", "2"].
#
# Guess: "007" is a text and 1 is a number, as HCL has them, and as hcl2-json-parser 1.0.1 says.
# Seen: "007" is 7, "12345678901234567890" is 12345678901234567000, and "1.10" is 1.1. In a list 1 and 2 are texts.
#
# Who it hurts: account numbers, versions and postcodes of a configuration, which are in quotes for just this reason.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" hcl-to-json@0.1.1 hcl2-json-parser@1.0.1
cat > "$work/config.hcl" << 'HCL'
account = "007"
number  = "12345678901234567890"
version = "1.10"
ports   = [1, 2]
HCL
cat > "$work/seen.cjs" << 'PROGRAM'
const text = require("fs").readFileSync("config.hcl", "utf8");
console.log(JSON.stringify(require("hcl-to-json")(text)));
require("hcl2-json-parser").parseToObject(text).then((other) => console.log(JSON.stringify(other)));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "hcl-to-json 0.1.1 and hcl2-json-parser 1.0.1: $seen"
[ "$seen" = '{"account":7,"number":12345678901234567000,"version":1.1,"ports":["1","2"]}
{"account":"007","number":"12345678901234567890","ports":[1,2],"version":"1.10"}' ]
