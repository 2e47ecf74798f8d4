# SPDX-License-Identifier: Apache-2.0
"""Bad input never stops muster: it refuses or rejects unreadable input, with line and reason."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import harness
from harness import HEADER, MusterTest

GOOD = "1,A,thing,3,2010-12-01 08:26:00,0.5,7,France"


COUNT_PY = """import json, sys
for line in sys.stdin:
    item = json.loads(line)
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"all": [
        {"k": "x", "n": len(item["transactions"])}]}}), flush=True)
"""
COUNTER = """handler: {command: [python3, count.py]}
groups:
  - {name: all, keys: [k], measures: {n: int}}
"""
JSONL_JOB = "name: tally\ninput: {format: jsonl, columns: [customer, amount]}\n" + COUNTER
LINES_JOB = "name: tally\ninput: {format: lines}\n" + COUNTER
PAIRS_JOB = "name: tally\ninput: {columns: [n, text], format: csv}\n" + COUNTER


class RefusedInputTest(MusterTest):
    """The command starts nothing, and leaves nothing behind."""

    def refuses(self, path, *words, job=harness.RETAIL_JOB):
        code, result, errors = self.run_job(path, job=job)
        self.assertEqual((code, result), (1, None), errors)
        for word in words:
            self.assertIn(word, errors)
        self.assertFalse(self.data_dir.exists(), "a data directory was left behind")

    def test_missing(self):
        self.refuses(self.folder / "none.csv", "none.csv")

    def test_a_folder(self):
        self.refuses(self.folder, str(self.folder))

    def test_empty(self):
        self.refuses(self.write("empty.csv", ""), "empty.csv", "header")

    def test_a_missing_column(self):
        self.refuses(self.write("in.csv", "InvoiceNo,Quantity\n1,2\n"), "in.csv", "UnitPrice")

    def test_utf_16(self):
        self.refuses(self.write("in.csv", (HEADER + "\n" + GOOD).encode("utf-16")), "UTF-8")

    def test_another_kind_of_file_by_its_name_with_what_to_do(self):
        rows = (HEADER + "\n" + f"{GOOD}\n".replace("thing", "Größe") * 300).encode()
        workbook = io.BytesIO()
        with zipfile.ZipFile(workbook, "w") as archive:
            archive.writestr("xl/workbook.xml", "<x/>" * 50)
        for content, words in (
                (gzip.compress(rows), ("gzip -dc",)),
                (bz2.compress(rows), ("bzip2 -dc",)),
                (lzma.compress(rows), ("xz -dc",)),
                (bytes.fromhex("28b52ffd2058") + b"x" * 40, ("zstd -dc",)),
                (workbook.getvalue(), ("Excel", "CSV UTF-8")),
                (rows.decode().encode("latin-1"), ("line 2", "iconv -f LATIN1 -t UTF-8")),
                (rows.decode().encode("utf-16-le"), ("iconv -f UTF-16LE -t UTF-8",)),
                (rows.decode().encode("utf-16-be"), ("iconv -f UTF-16BE -t UTF-8",)),
                (rows.decode().encode("utf-32"), ("iconv -f UTF-32 -t UTF-8",)),
                (rows + b"\0" * 5000, ("ends with 5000 NUL bytes",)),
                (rows.replace(b"\n", b"\r\r\n"), ("CR CR LF",)),
                (rows.replace(b",", b";"), ('delimiter: ";"',)),
                (b"sep=;\n" + rows.replace(b",", b";"), ("sep=", 'delimiter: ";"')),
                (b"<!DOCTYPE html>\n<html><title>404</title>", ("HTML",)),
                (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", ("PDF",)),
        ):
            with self.subTest(words=words):
                self.refuses(self.write("in.csv", content), "in.csv", *words)

    def test_what_is_no_json_lines(self):
        self.write("count.py", COUNT_PY)
        job = self.write("job.yaml", JSONL_JOB)
        objects = [{"customer": "a", "amount": n} for n in range(300)]
        lines = [json.dumps(o) for o in objects]
        for content, words in (
                (json.dumps(objects), ("JSON array", "jq -c '.[]'")),
                ("[\n" + ",\n".join(lines) + "\n]\n", ("JSON array", "jq -c '.[]'")),
                ("\n".join(json.dumps(o, indent=2) for o in objects), ("several lines", "jq -c .")),
                ("\r".join(lines), ("CR alone",)),
                ("customer,amount\na,1\nb,2\n", ("none of the first 3 lines is a JSON object",)),
        ):
            with self.subTest(words=words):
                self.refuses(self.write("in.jsonl", content), "in.jsonl", *words, job=job)

    def test_lines_that_end_with_cr_alone(self):
        self.write("count.py", COUNT_PY)
        job = self.write("job.yaml", LINES_JOB)
        self.refuses(self.write("in.txt", "\r".join("abc" for _ in range(300))), "CR alone", job=job)

    def test_job_file_mistakes_name_file_line_and_field(self):
        data = self.write("in.csv", f"{HEADER}\n{GOOD}\n")
        text = harness.RETAIL_JOB.read_text()
        for broken, words in (
                (text.replace("partitions:", "partition:"), ("partition", "partitions")),
                (text.replace("transactions: 500", "transactions: many"), ("many",)),
                (text.replace("linked: retail", "linked: retali"), ("retali", "retail")),
                (text.replace("decimal(3)", "decimal(99)", 1), ("decimal(99)",)),
                (text.replace("quantity: Quantity", "quantity: [1]"), ("quantity",)),
        ):
            self.assertNotEqual(broken, text)
            job = self.write("broken.yaml", broken)
            self.refuses(data, *words, job=job)

    def test_a_word_of_yaml_is_a_name_only_in_quotes(self):
        data = self.write("in.csv", f"{HEADER}\n{GOOD}\n")
        text = harness.RETAIL_JOB.read_text()
        job = self.write("broken.yaml", text.replace("name: retail", "name: on", 1))
        self.refuses(data, 'name: must be a name; write it in quotes: "on"', job=job)

    def test_job_check_says_what_run_would(self):
        job = self.write("broken.yaml", harness.RETAIL_JOB.read_text().replace(
            "partitions:", "partition:"))
        done = self.muster("job", "check", job)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"broken\.yaml:\d+:\d+: ")
        self.assertEqual(self.muster("job", "check", harness.RETAIL_JOB).returncode, 0)


class TakenInputTest(MusterTest):
    def test_a_few_records_with_a_nul_are_rejected_alone(self):
        self.write("count.py", COUNT_PY)
        data = self.write("in.txt", "".join("a\0b\n" if n % 1500 == 700 else f"{n}\n" for n in range(5001)))
        job = self.write("job.yaml", LINES_JOB + "tolerate: {rejected: 10}\n")
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual((code, result["aggregated"], result["rejected"]), (0, 4998, 3), errors)

    def test_a_text_that_has_a_word_of_an_archive_where_an_archive_has_it(self):
        self.write("count.py", COUNT_PY)
        data = self.write("in.txt", "m".rjust(257) + "ustard\n")
        self.assertEqual(data.read_bytes()[257:262], b"ustar")
        code, result, errors = self.run_job(data, job=self.write("job.yaml", LINES_JOB))
        self.assertEqual((code, result["rejected"]), (0, 0), errors)


class NamesOfSqliteTest(MusterTest):
    def test_a_group_that_is_called_as_a_function_of_sqlite(self):
        self.write("count.py", COUNT_PY.replace('"all"', '"pragma_table_info"'))
        job = self.write("job.yaml", LINES_JOB.replace("name: all", "name: pragma_table_info"))
        code, _, errors = self.run_job(self.write("in.txt", "a\nb\n"), job=job)
        self.assertEqual(code, 0, errors)
        checked = self.muster("check", "--data-dir", self.data_dir)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class RecordsOfSeveralLinesTest(MusterTest):
    """Two stray quotes make one record of many: it is never unsaid."""

    def setUp(self):
        super().setUp()
        self.write("count.py", COUNT_PY)
        rows = [f"{n},plain" for n in range(50)]
        rows[9] = '9,"stray'
        rows[40] = '40,stray"'
        self.swallowed = self.write("in.csv", "n,text\n" + "\n".join(rows) + "\n")

    def run_with(self, *keys):
        job = self.write("job.yaml", PAIRS_JOB.replace("csv", ", ".join(("csv", *keys))))
        return self.run_job(self.swallowed, job=job)

    def test_they_are_counted_and_warned_of(self):
        code, result, errors = self.run_with()
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["transactions"], result["multiline_records"],
                          result["multiline_record_lines"]), (19, 1, 32))
        self.assertRegex(errors, r"warning: 1 record .*32 lines.* line 11\b.*multiline: false")
        shown = self.muster("batch", "get", result["batch"], "--data-dir", self.data_dir).stdout
        self.assertRegex(shown, r"multiline_records: 1\n.*lines: 32\n.*\[11\]\n")

    def test_a_job_that_expects_them_is_not_warned(self):
        code, result, errors = self.run_with("multiline: true")
        self.assertEqual((code, result["multiline_records"]), (0, 1), errors)
        self.assertNotIn("warning", errors)

    def test_a_job_may_have_none(self):
        code, result, errors = self.run_with("multiline: false")
        self.assertEqual((code, result["transactions"], result["rejected"]), (3, 50, 1), errors)
        self.assertNotIn("multiline_records", result)

    def test_a_job_may_take_quotes_as_they_are(self):
        code, result, errors = self.run_with("quote: none")
        self.assertEqual((code, result["transactions"], result["rejected"]), (0, 50, 0), errors)


class GrowingInputTest(MusterTest):
    """What is appended while an input is read belongs to no batch. An export that was still being written lost its last
    records so, and nothing said it."""

    def test_it_is_warned_of(self):
        data = self.write("in.txt", "a\nb\nc")
        self.write("count.py", f"open({str(data)!r}, 'a').write('c and more\\nd\\n')\n" + COUNT_PY)
        code, result, errors = self.run_job(data, job=self.write("job.yaml", LINES_JOB))
        self.assertEqual((code, result["transactions"]), (0, 3), errors)
        self.assertIn(f"{data} has grown to 18 bytes: batch {result['batch']} is made of the 5 that it had", errors)

    def test_an_input_that_stays_as_it_was_is_not(self):
        self.write("count.py", COUNT_PY)
        code, _, errors = self.run_job(self.write("in.txt", "a\n"), job=self.write("job.yaml", LINES_JOB))
        self.assertEqual((code, "warning" in errors), (0, False), errors)


class RejectedRowsTest(MusterTest):
    """The other rows still count."""

    def rejects(self, content, *reasons, aggregated):
        code, result, errors = self.run_job(self.write("in.csv", content))
        self.assertEqual(code, 3 if reasons else 0, errors)
        self.assert_all_accounted_for(result)
        self.assertEqual(result["aggregated"], aggregated)
        self.assertEqual(result["rejected"], len(reasons))
        self.assert_receipt_holds(result["batch"])
        shown = self.muster("batch", "get", result["batch"], "--data-dir", self.data_dir).stdout
        for reason in reasons:
            self.assertRegex(shown, reason)

    def test_header_only_is_a_batch_of_nothing(self):
        self.rejects(HEADER + "\n", aggregated=0)

    def test_ragged_rows(self):
        self.rejects(f"{HEADER}\n{GOOD}\n1,2,3\n{GOOD},extra\n{GOOD}\n",
                     r"(?m)^ *3  .*fields", r"(?m)^ *4  .*fields", aggregated=2)

    def test_an_unclosed_quote_costs_its_own_row(self):
        self.rejects(f'{HEADER}\n{GOOD}\n1,A,"never closed,3,2010-12-01 08:26:00,0.5,7,France\n'
                     f"{GOOD}\n", r"(?m)^ *3  .*quote", aggregated=2)

    def test_bytes_that_are_not_utf_8(self):
        self.rejects(f"{HEADER}\n{GOOD}\n".encode() + b"1,A,caf\xe9,3,2010-12-01 08:26:00,0.5,7,X\n",
                     r"(?m)^ *3  .*UTF-8", aggregated=1)

    def test_nul_bytes_and_a_cr_that_no_lf_follows(self):
        self.rejects(f"{HEADER}\n" + GOOD.replace("thing", "th\0ing") + "\n" + GOOD + "\r" + GOOD +
                     "\n" + GOOD.replace("thing", '"two\rlines"') + "\n",
                     r"(?m)^ *2  .*NUL", r"(?m)^ *3  .*CR that no LF follows", aggregated=1)

    def test_values_that_do_not_parse(self):
        rows = [GOOD.replace(",3,", ",three,"), GOOD.replace("0.5", "1e3"),
                GOOD.replace("2010-12-01", "yesterday"), GOOD]
        self.rejects(HEADER + "\n" + "\n".join(rows) + "\n", r"(?m)^ *2  .*quantity",
                     r"(?m)^ *3  .*price", r"(?m)^ *4  .*date", aggregated=1)

    def test_a_value_that_overflows_is_rejected_and_never_wrapped(self):
        row = GOOD.replace(",3,", ",9223372036854775807,")
        self.rejects(f"{HEADER}\n{row}\n{row}\n{GOOD}\n", r"(?m)^ *3  .*overflow",
                     r"(?m)^ *4  .*overflow", aggregated=1)

    def test_a_line_of_100_mb_is_one_rejected_row(self):
        long = GOOD.replace("thing", "x" * 100_000_000)
        self.rejects(f"{HEADER}\n{GOOD}\n{long}\n{GOOD}\n", r"(?m)^ *3  .*1048576|1 MiB",
                     aggregated=2)

    def test_crlf_quoted_newlines_and_no_newline_at_the_end(self):
        quoted = GOOD.replace("thing", '"two\r\nlines, and ""quotes"""')
        self.rejects(f"{HEADER}\r\n{quoted}\r\n{GOOD}", aggregated=2)


if __name__ == "__main__":
    harness.main()
