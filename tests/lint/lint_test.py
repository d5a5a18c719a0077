#!/usr/bin/python3
"""Does scripts/lint-arrows reject each known-bad tree, at the line where it is bad and nowhere else?

Each folder of bad/ is a small source tree; its file `expect` lists what must be found, as `file:line: rule`, sorted.
Its name begins with a rule. Bad trees that can't be kept as files (long ones, forbidden words, compiled ones) are
written here.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LINT = os.path.join(HERE, "..", "..", "scripts", "lint-arrows")
BAD = os.path.join(HERE, "bad")

# Rules whose bad tree is written by a test below.
WRITTEN_HERE = {"length", "machine-path", "unfinished", "core-state"}


def run(*arguments):
    return subprocess.run(["/usr/bin/python3", LINT, *arguments], capture_output=True, text=True, check=False)


def places(output):
    """`file:line: rule` of each finding."""
    findings = [line for line in output.splitlines() if not line.endswith(" files keep the rules")]
    return sorted(": ".join(line.split(": ")[:2]) for line in findings)


class KnownBad(unittest.TestCase):
    def test_every_kept_tree_is_rejected_exactly_where_it_is_bad(self):
        for name in sorted(os.listdir(BAD)):
            with self.subTest(tree=name):
                root = os.path.join(BAD, name)
                with open(os.path.join(root, "expect"), encoding="utf-8") as file:
                    expected = sorted(file.read().splitlines())
                result = run("--root", root)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertTrue(expected)
                self.assertEqual(places(result.stdout), expected)

    def test_every_rule_has_a_known_bad_tree(self):
        rules = set(run("--rules").stdout.split())
        kept = {name.split(".")[0] for name in os.listdir(BAD)}
        self.assertEqual(rules, kept | WRITTEN_HERE)

    def test_every_forbidden_arrow_is_rejected(self):
        """The whole table of docs/design.md, section 2: each ordered pair of folders."""
        allowed = {
            "protocol/base": "",
            "protocol/core": "protocol/base",
            "protocol/wire": "protocol/base protocol/core",
            "protocol/rpc": "protocol/base protocol/core protocol/wire",
            "protocol/sim": "protocol/base protocol/core compute workloads",
            "storage": "protocol/base protocol/core protocol/wire protocol/rpc",
            "compute": "protocol/base protocol/core protocol/wire protocol/rpc workloads",
            "workloads": "protocol/base",
        }
        with tempfile.TemporaryDirectory() as root:
            for folder in [*allowed, "tests"]:
                name = os.path.basename(folder)
                write(root, f"{folder}/{name}.h", f"/* {name}.h - a header. */\n")
            for source, targets in allowed.items():
                for target in [*allowed, "tests"]:
                    if target == source:
                        continue
                    include = f"{target}/{os.path.basename(target)}.h".removeprefix("protocol/")
                    path = write(root, f"{source}/x.c", f'#include "{include}"\n')
                    result = run("--root", root)
                    self.assertEqual(result.returncode, 0 if target in targets.split() else 1,
                                     f"{source} -> {target}: {result.stdout}")
                    os.remove(path)


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)
    return full


class WrittenHere(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def assert_found(self, *expected):
        result = run("--root", self.root)
        self.assertEqual(places(result.stdout), sorted(expected), result.stderr)
        self.assertEqual(result.returncode, 1 if expected else 0)

    def test_length(self):
        write(self.root, "storage/long.c", "\n" * 601)
        write(self.root, "storage/right.c", "\n" * 600)
        write(self.root, "scripts/long", "#!/usr/bin/python3\n" + "\n" * 700)
        write(self.root, "scripts/right", "#!/usr/bin/python3\n" + "\n" * 699)
        write(self.root, "tests/core/long_test.c", "\n" * 1001)
        write(self.root, "tests/core/right_test.c", "\n" * 1000)
        self.assert_found("storage/long.c:601: length", "scripts/long:701: length", "tests/core/long_test.c:1001: length")

    def test_machine_path(self):
        bad = ["/" + "work/main", "see /" + "root.", "/" + "tmp/h/notes"]
        write(self.root, "docs/x.md", "\n".join([bad[0], "/workloads", bad[1] + "ed", "a/work/b", bad[2], bad[1][:-1]]))
        self.assert_found("docs/x.md:1: machine-path", "docs/x.md:5: machine-path", "docs/x.md:6: machine-path")

    def test_unfinished(self):
        words = ["TO" + "DO", "FIX" + "ME", "X" * 3, "X" * 6, "TO" + "DOS"]
        write(self.root, "compute/x.c", "".join(f"/* {word} */\n" for word in words))
        self.assert_found(*(f"compute/x.c:{line}: unfinished" for line in (1, 2, 3)))

    def test_build_folders_and_results_are_left_alone(self):
        write(self.root, "build/x.c", "\t\n")
        write(self.root, "build-clang/x.c", "\t\n")
        write(self.root, "results/run/x.c", "\t\n")
        self.assert_found()


class CoreState(unittest.TestCase):
    """Mutable globals are looked for in the compiled core."""

    def find(self, source):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, "x.c", source)
            subprocess.run(["gcc", "-c", "-fPIE", "x.c", "-o", "x.o"], cwd=folder, check=True)
            subprocess.run(["ar", "rc", "libx.a", "x.o"], cwd=folder, check=True)
            tree = os.path.join(folder, "tree")
            os.mkdir(tree)
            return run("--root", tree, "--core-objects", os.path.join(folder, "libx.a"))

    def test_mutable_globals_are_rejected(self):
        sources = {
            "counter": "int counter;\n",
            "table": "static int table[4] = {1};\nint next(void) { return table[0]++; }\n",
            "calls": "int count(void) { static int calls; return ++calls; }\n",
            "mine": "_Thread_local int mine;\n",
            "common": "__attribute__((common)) int common;\n",
        }
        for name, source in sources.items():
            with self.subTest(name=name):
                result = self.find(source)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stdout, rf"^x\.o:1: core-state: .* {name}(\.\d+)? lies in")
                self.assertEqual(len(result.stdout.splitlines()), 1)

    def test_constants_are_not_state(self):
        result = self.find('static const char *const names[] = {"a", "b"};\n'
                           "const int limit = 3;\n"
                           "const char *name(int i) { return names[i]; }\n")
        self.assertEqual(result.returncode, 0, result.stdout)


class Good(unittest.TestCase):
    def test_the_good_tree_passes(self):
        result = run("--root", os.path.join(HERE, "good"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_wrong_arguments_are_refused(self):
        for arguments in (["--root", "nowhere"], ["--core-objects", "nowhere.a"], ["--nonsense"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertTrue(result.stderr)


if __name__ == "__main__":
    unittest.main()
