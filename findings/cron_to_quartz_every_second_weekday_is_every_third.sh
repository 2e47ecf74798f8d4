#!/usr/bin/env bash
# cron-to-quartz 1.4.15 (expressions of cron for Quartz, for JavaScript): a step of weekdays is one more. */2 becomes
# */3, and 1-5/2 becomes 2-6/3.
#
# Guess: a day is one more, for Quartz counts from Sunday as 1 and cron from Sunday as 0, and a step stays: */2 and
# 2-6/2. So 1-5 is 2-6, which is right.
# Seen: each number of the field is one more. Sunday, Tuesday, Thursday and Saturday become Sunday, Wednesday and
# Saturday, and Monday, Wednesday and Friday become Monday and Thursday. The list 1,3,5 and steps of hours are right.
#
# Who it hurts: whoever moves jobs to Quartz: those of every second day run less often, on other days, and the
# expression is a valid one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" cron-to-quartz@1.4.15
cat > "$work/seen.cjs" << 'PROGRAM'
const { getQuartz } = require("cron-to-quartz");

const expressions = ["0 */2 * * 1-5", "0 9 * * 1,3,5", "0 9 * * */2", "0 9 * * 1-5/2"];
console.log(expressions.map((expression) => getQuartz(expression)[0].join(" ")).join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "cron-to-quartz 1.4.15, 0 */2 * * 1-5, and 1,3,5, */2 and 1-5/2 as weekdays: $seen"
[ "$seen" = "0 0 */2 ? * 2-6 *; 0 0 9 ? * 2,4,6 *; 0 0 9 ? * */3 *; 0 0 9 ? * 2-6/3 *" ]
