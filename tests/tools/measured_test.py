"""What tools/measured.py makes of results, and that dc-sim reads the same from a pack as from files.

    tests/tools/measured_test.py BIN
"""
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = SOURCE / "tools" / "measured.py"
DC_SIM = pathlib.Path(sys.argv.pop(1)).resolve() / "dc-sim"


class MeasuredTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.traces = pathlib.Path(self.scratch.name)
        workload = SOURCE / "traces" / "tiny-llama"
        self.measured = self.traces / "tiny-llama" / "measured"
        self.measured.mkdir(parents=True)
        for file in (*workload.glob("graph.json.xz"), *workload.glob("profile-*.json.xz")):
            shutil.copy(file, self.measured.parent)
        self.packed = workload / "measured" / "h200-1.jsonl.xz"
        for line in self.run_tool("list", "tiny-llama", traces=SOURCE / "traces").stdout.splitlines():
            if line.startswith(f"{self.packed}:"):
                self.put(line.partition(".xz:")[2], self.run_tool("extract", line).stdout)

    def run_tool(self, *arguments, traces=None):
        return subprocess.run([sys.executable, TOOL, "--traces", traces or self.traces, *arguments],
                              capture_output=True, text=True, check=False)

    def put(self, name, text):
        (self.measured / "h200-1").mkdir(exist_ok=True)
        (self.measured / "h200-1" / f"{name}.json.gz").write_bytes(gzip.compress(text.encode()))

    def compare(self, path):
        command = [DC_SIM, "compare", path, "--cluster", "h200-1", "--no-host", "--json", "-"]
        pairs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["comparisons"]
        return sorted(json.dumps({key: pair[key] for key in ("predicted", "measured")}) for pair in pairs)

    def test_a_pack_says_what_its_files_said(self):
        before = self.compare(self.measured / "h200-1")
        self.assertEqual(self.run_tool("check").returncode, 1, "results in no pack")
        self.assertEqual(self.run_tool("add").stderr, "")
        self.assertFalse((self.measured / "h200-1").exists())
        self.assertEqual(self.compare(self.measured / "h200-1.jsonl.xz"), before)
        self.assertGreater(len(before), 1)
        self.assertEqual(self.run_tool("check").returncode, 0)
        self.assertEqual((self.measured / "manifest.txt").read_text(),
                         "".join(line for line in (self.packed.parent / "manifest.txt").read_text().splitlines(True)
                                 if line.startswith("h200-1 ")))

    def test_a_second_result_of_a_name_replaces_the_first(self):
        self.run_tool("add")
        first = self.run_tool("list").stdout.splitlines()
        changed = dict(json.loads(self.run_tool("extract", first[0]).stdout), step_time_ns=1)
        self.put(first[0].partition(".xz:")[2], json.dumps(changed))
        self.assertEqual(self.run_tool("add").stderr, "")
        self.assertEqual(self.run_tool("list").stdout.splitlines(), first)
        self.assertEqual(json.loads(self.run_tool("extract", first[0]).stdout), changed)

    def test_what_is_no_result_changes_nothing(self):
        for text in ('{"format": "dc-plan/1"}', "[]", '{"format": '):
            self.put("other", text)
            done = self.run_tool("add")
            self.assertEqual(done.returncode, 1)
            self.assertIn("other.json.gz: ", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(list(self.measured.glob("*.xz")), [])

    def test_timelines_stay_files(self):
        self.put("zero1.timeline", '{"traceEvents": []}')
        self.assertEqual(self.run_tool("add").stderr, "")
        self.assertEqual([file.name for file in self.measured.glob("*/*")], ["zero1.timeline.json.gz"])

    def test_a_manifest_of_something_else_is_a_fault(self):
        self.run_tool("add")
        manifest = self.measured / "manifest.txt"
        manifest.write_text(manifest.read_text().replace("h200-1", "h200-2", 1))
        done = self.run_tool("check")
        self.assertEqual((done.returncode, done.stdout), (1, f"{manifest}: expected what the packs hold\n"))


if __name__ == "__main__":
    unittest.main()
