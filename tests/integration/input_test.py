"""Bad input never stops muster: it refuses or rejects unreadable input, with line and reason."""

import harness
from harness import HEADER, MusterTest

GOOD = "1,A,thing,3,2010-12-01 08:26:00,0.5,7,France"


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

    def test_job_check_says_what_run_would(self):
        job = self.write("broken.yaml", harness.RETAIL_JOB.read_text().replace(
            "partitions:", "partition:"))
        done = self.muster("job", "check", job)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"broken\.yaml:\d+:\d+: ")
        self.assertEqual(self.muster("job", "check", harness.RETAIL_JOB).returncode, 0)


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
