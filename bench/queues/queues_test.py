#!/usr/bin/env python3
"""Runs what is installed of Celery, BullMQ and Asynq on a few items: queues_test.py SOURCE_DIR

What is not installed must be left out with a word on how to install it.
"""

import contextlib
import dataclasses
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

source = pathlib.Path(sys.argv.pop())
sys.path.insert(0, str(source / "bench/mesh"))
import queues  # noqa: E402

ITEMS = 300


class Queues(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def hint(self, queue):
        said = io.StringIO()
        with mock.patch.object(queues, "QUEUES", [queue]), contextlib.redirect_stderr(said):
            self.assertEqual(queues.installed_queues(), [])
        return said.getvalue()

    def test_says_how_a_missing_library_is_installed(self):
        absent = self.folder / "absent"
        for queue in queues.QUEUES:
            hint = self.hint(dataclasses.replace(queue, library=absent))
            self.assertIn(f"no {absent}", hint)
            self.assertIn(f"bench/queues/install {queue.name}", hint)

    def test_says_that_the_server_is_missing(self):
        with mock.patch.object(queues, "SERVER", str(self.folder / "no-server")):
            self.assertIn("no-server", self.hint(queues.QUEUES[0]))

    def test_handles_each_item_once(self):
        lines = self.folder / "lines"
        lines.write_text("".join(f"{i:099}\n" for i in range(ITEMS)))
        for queue in queues.installed_queues():
            with self.subTest(queue.name):
                folder = self.folder / queue.name
                folder.mkdir()
                figures = queue.run(folder, lines)
                self.assertEqual((figures["items"], figures["handled"]), (ITEMS, ITEMS))
                self.assertGreater(figures["items_per_second"], 0)
                self.assertGreater(figures["cpu_seconds"], 0)


unittest.main()
