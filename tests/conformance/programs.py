"""Hostile and awkward candidates: what each does, and the verdicts that may come back.

Each is a whole module with a function `f` of one number that should give its double. Unless a
program says otherwise it is judged by `assert f(2) == 4`, and does not answer that.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """One candidate and what must become of it."""

    claim: str
    code: str
    statuses: str
    """The statuses that are right, with spaces between."""
    says: str = ""
    """A part of the message that must come back."""
    test: str = "assert f(2) == 4"
    hasty: bool = False
    """Judged with one second a test: what it does is to last."""
    may_fall_back: bool = False
    is_async: bool = False
    more: dict[str, bytes] = field(default_factory=dict)
    """Further files beside the module, as the user wrote them."""

    def __str__(self) -> str:
        return self.claim


WRITE_FRAMES = """
import json, os
def frame(message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
END = {"end": {"status": "passed", "expected": None, "actual": None, "compared": False,
               "message": "", "frames": [], "seconds": 0.0, "printed": "", "unstable": False}}
SAY = {"say": "verdict", "nonce": "", "import": None, "results": []}
def shout(*messages, fds=range(1, 256)):
    for fd in fds:
        for message in messages:
            try:
                os.write(fd, frame(message))
            except OSError:
                pass
"""
CHANNEL = """
import json, os, socket, stat
def channels():
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            pass
def write(data):
    for fd in channels():
        os.write(fd, data)
def frame(message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
"""
PROCESSES = """
import os
def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
def others():
    return [pid for pid in pids() if pid not in (os.getpid(), os.getppid())]
"""

FORGERIES = [
    Program("exits 0 while being imported", "import sys\nsys.exit(0)", "error", "SystemExit"),
    Program(
        "leaves by os._exit(0) while being imported",
        "import os\nos._exit(0)",
        "error",
        "exited with status 0 while being imported",
    ),
    Program("calls sys.exit(0)", "import sys\ndef f(x): sys.exit(0)", "error", "SystemExit"),
    Program("calls os._exit(0)", "import os\ndef f(x): os._exit(0)", "error", "status 0"),
    Program("raises SystemExit(0)", "def f(x): raise SystemExit(0)", "error", "SystemExit"),
    Program("raises KeyboardInterrupt", "def f(x): raise KeyboardInterrupt", "error", "Keyboard"),
    Program("raises GeneratorExit", "def f(x): raise GeneratorExit", "error", "GeneratorExit"),
    Program(
        "returns an object that equals everything",
        "class A:\n def __eq__(self, other): return True\n __hash__ = None\ndef f(x): return A()",
        "error",
        "unsupported type: A",
    ),
    Program(
        "returns an int that equals everything",
        "class A(int):\n def __eq__(self, other): return True\ndef f(x): return A(5)",
        "error",
        "unsupported type: A",
    ),
    Program(
        "returns a str that equals everything",
        "class A(str):\n def __eq__(s, o): return True\n __hash__ = str.__hash__\n"
        "def f(x): return A('no')",
        "error",
        "unsupported type: A",
    ),
    Program(
        "returns a list of objects that equal everything",
        "class A(int):\n def __eq__(self, other): return True\ndef f(x): return [A(5)]",
        "error",
        "unsupported type: A",
        test="assert f(2) == [4]",
    ),
    Program(
        "returns a dict with a key that equals everything",
        "class K(str):\n def __eq__(s, o): return True\n def __hash__(s): return hash('a')\n"
        "def f(x): return {K('b'): 4}",
        "error",
        "unsupported type: K",
        test="assert f(2)['a'] == 4",
    ),
    Program(
        "returns an object whose class claims to be int",
        "class A:\n @property\n def __class__(self): return int\n"
        " def __eq__(self, other): return True\ndef f(x): return A()",
        "error",
        "unsupported type: A",
    ),
    Program(
        "returns a value whose metaclass hashes and equals as int does",
        "class M(type):\n def __hash__(c): return hash(int)\n def __eq__(c, o): return True\n"
        "class A(metaclass=M):\n def __eq__(s, o): return True\n __hash__ = None\n"
        "def f(x): return A()",
        "error",
        "unsupported type: A",
    ),
    Program(
        "patches unittest",
        "import unittest\n"
        "unittest.TestCase.assertEqual = lambda *a: None\n"
        "unittest.TestResult.addFailure = lambda *a: None\n"
        "unittest.TestCase.failureException = SystemExit\n"
        "def f(x): return 5",
        "failed",
    ),
    Program(
        "walks the frames and writes passed into whatever it finds",
        "import sys\n"
        "def f(x):\n"
        "    frame = sys._getframe()\n"
        "    while frame:\n"
        "        for v in list(frame.f_locals.values()):\n"
        "            try:\n"
        "                if isinstance(v, list): v.append({'status': 'passed'})\n"
        "                if isinstance(v, dict): v['status'] = 'passed'; v['result'] = 'passed'\n"
        "            except Exception: pass\n"
        "        frame = frame.f_back\n"
        "    return 5",
        "failed error",
    ),
    Program(
        "hunts for the harness's objects and makes them say passed",
        "import gc\n"
        "def f(x):\n"
        "    for v in gc.get_objects():\n"
        "        try:\n"
        "            if type(v) is dict and 'status' in v: v['status'] = 'passed'\n"
        "            if type(v).__name__ in ('Remote', 'Job', 'Tests', 'Host'):\n"
        "                v.trouble = None; v.calls = 9; v.problem = None\n"
        "        except Exception: pass\n"
        "    return 5",
        "failed error",
    ),
    Program(
        "prints every success marker and leaves",
        "import os\n"
        "def f(x):\n"
        "    for t in ('PASSED', 'OK', '1 passed in 0.01s', '{\"status\": \"passed\"}',\n"
        "              'ok\\n----\\nRan 1 test\\n\\nOK'): print(t, flush=True)\n"
        "    os._exit(0)",
        "error",
        "status 0",
    ),
    Program(
        "writes verdicts to every descriptor",
        WRITE_FRAMES + "def f(x):\n    shout(END, SAY, END['end'])\n    return 5",
        "failed error",
    ),
    Program(
        "writes verdicts to every descriptor while being imported",
        WRITE_FRAMES + "shout(END, SAY, END['end'], {'ended': 'passed'})\ndef f(x): return 5",
        "failed error",
    ),
    Program(
        "opens the descriptors of every process and writes verdicts there",
        WRITE_FRAMES + PROCESSES + "def f(x):\n"
        "    for pid in others():\n"
        "        for fd in range(64):\n"
        "            try: os.write(os.open(f'/proc/{pid}/fd/{fd}', os.O_WRONLY), frame(END))\n"
        "            except OSError: pass\n"
        "    return 5",
        "failed",
    ),
    Program(
        "leaves by the exception hook",
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\n"
        "sys.unraisablehook = sys.excepthook\ndef f(x): raise ValueError('no')",
        "error",
        "ValueError: no",
    ),
    Program(
        "lets a thread leave with 0 while it sleeps",
        "import os, threading, time\n"
        "def f(x):\n"
        "    threading.Timer(0.1, lambda: os._exit(0)).start()\n"
        "    time.sleep(5)",
        "error",
        "status 0",
    ),
    Program(
        "kills every process that it sees",
        "import os, signal\n"
        "def f(x):\n"
        "    for name in os.listdir('/proc'):\n"
        "        if name.isdigit() and int(name) != os.getpid():\n"
        "            try: os.kill(int(name), signal.SIGKILL)\n"
        "            except OSError: pass\n"
        "    return 4",
        "no-verdict",
    ),
    Program(
        "kills all at once",
        "import os\ndef f(x):\n    os.kill(-1, 9)\n    return 4",
        "no-verdict",
        "the test's process",
    ),
    Program(
        "sends every signal to the supervisor and answers rightly",
        "import os\n"
        "def f(x):\n"
        "    for number in range(1, 65):\n"
        "        try: os.kill(1, number)\n"
        "        except OSError: pass\n"
        "    return 4",
        "passed",
    ),
    Program(
        "kills the test's process alone",
        PROCESSES + "def f(x):\n"
        "    for pid in others():\n"
        "        if pid != 1: os.kill(pid, 9)\n"
        "    return 4",
        "no-verdict",
        "the test's process",
    ),
    Program(
        "ends the test's process gently, signal by signal",
        PROCESSES + "import time\n"
        "def f(x):\n"
        "    for pid in others():\n"
        "        for number in (2, 10, 12, 14, 15, 13, 29, 1, 3, 5, 6):\n"
        "            if pid == 1: continue\n"
        "            try: os.kill(pid, number)\n"
        "            except OSError: pass\n"
        "    time.sleep(0.2)\n"
        "    return 4",
        "no-verdict",
    ),
    Program(
        "stops the test's process",
        PROCESSES + "def f(x):\n"
        "    for pid in others():\n"
        "        if pid != 1: os.kill(pid, 19)\n"
        "    return 4",
        "timeout",
        hasty=True,
    ),
    Program(
        "stops the parent of its own process",
        "import os\ndef f(x):\n    os.kill(os.getppid(), 19)\n    return 5",
        "failed",
    ),
    Program(
        "reads and writes the test's memory",
        "import ctypes, os\n"
        "def f(x):\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    got = []\n"
        "    for name in os.listdir('/proc'):\n"
        "        pid = int(name) if name.isdigit() else 0\n"
        "        if not pid or pid in (os.getpid(), os.getppid()): continue\n"
        "        for path in ('mem', 'maps', 'environ', 'fd/0', 'fd/1', 'fd/3', 'fd/4', 'fd/5'):\n"
        "            try: os.open(f'/proc/{pid}/{path}', os.O_RDWR); got.append(path)\n"
        "            except OSError: pass\n"
        "            try: os.open(f'/proc/{pid}/{path}', os.O_RDONLY); got.append(path)\n"
        "            except OSError: pass\n"
        "        if libc.ptrace(16, pid, 0, 0) == 0: got.append('ptrace')\n"
        "        if libc.process_vm_readv(pid, 0, 0, 0, 0, 0) == 0: got.append('vm')\n"
        "    return got or 5",
        "failed",
        test="assert f(2) == [], 'nothing could be opened'",
        says="got 5",
    ),
    Program(
        "plants modules and start-up files wherever it can",
        "import os\n"
        "def f(x):\n"
        "    for folder in ('.', '/tmp', '/tmp/work', '/tmp/pkg', os.environ['HOME'],\n"
        "                   '/tmp/.local/lib/python3.13/site-packages', '/sandbox', '/work'):\n"
        "        for name in ('conftest.py', 'sitecustomize.py', 'usercustomize.py', 'x.pth',\n"
        "                     'unittest.py', 'json.py', 'm.py', 'colorsys.py', 'chunk.py'):\n"
        "            try:\n"
        "                os.makedirs(folder, exist_ok=True)\n"
        "                open(os.path.join(folder, name), 'w').write('import os; os._exit(0)')\n"
        "            except OSError: pass\n"
        "    return 5",
        "failed",
        test="got = f(2)\nimport colorsys, html.entities, plistlib\nassert got == 4",
    ),
    Program(
        "swaps what the harness is made of",
        "import builtins, json, os, socket, sys\n"
        "class Quiet(Exception): pass\n"
        "builtins.AssertionError = Quiet\n"
        "builtins.compile = builtins.exec = builtins.__import__ = lambda *a, **k: None\n"
        "def f(x): return 5",
        "failed error",
    ),
    Program(
        "patches len, isinstance and type",
        "import builtins\n"
        "builtins.len = lambda x: 0\n"
        "builtins.isinstance = lambda *a: True\n"
        "builtins.type = lambda *a: int\n"
        "def f(x): return 5",
        "failed error",
    ),
    Program(
        "patches fork and _exit",
        "import os\nos.fork = lambda: 0\nos._exit = lambda code: None\ndef f(x): return 5",
        "failed error",
    ),
    Program(
        "patches socket and json",
        "import json, socket\n"
        'json.loads = json.dumps = lambda *a, **k: \'{"end": {"status": "passed"}}\'\n'
        "socket.socket.sendall = lambda *a: None\ndef f(x): return 5",
        "failed error timeout",
        hasty=True,
    ),
    Program(
        "puts false modules into sys.modules",
        "import sys, types\n"
        "for name in ('json', 'unittest', 'sandbox', 'sandbox.wire', 'sandbox.checks', 'ast'):\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "def f(x): return 5",
        "failed error",
    ),
    Program(
        "traces and profiles to skip what follows",
        "import sys, threading\n"
        "def skip(frame, event, arg):\n"
        "    if frame.f_code.co_name in ('compare', 'truth', 'judged'): raise SystemExit(0)\n"
        "    return skip\n"
        "sys.settrace(skip); sys.setprofile(skip); threading.settrace(skip)\n"
        "def f(x):\n    sys.settrace(skip)\n    return 5",
        "failed",
    ),
    Program(
        "registers exit handlers",
        "import atexit, os, weakref\n"
        "atexit.register(os._exit, 0)\nweakref.finalize(os, os._exit, 0)\n"
        "os.register_at_fork(after_in_child=lambda: None)\ndef f(x): return 5",
        "failed",
    ),
    Program(
        "leaves when a forgotten object is collected",
        "import os\n"
        "class Bomb:\n    def __del__(self): os._exit(0)\n"
        "def f(x):\n    b = Bomb(); b.me = b\n    del b\n    import gc; gc.collect()\n    return 5",
        "error",
        "status 0",
    ),
    Program(
        "answers twice to one call",
        CHANNEL
        + "def f(x):\n    write(frame({'value': ['t', 9, ['t', 2], ['d']]}) * 3)\n    return 5",
        "failed",
        test="assert f(2) == 4\nassert f(3) == 6",
    ),
    Program(
        "answers before it is asked",
        CHANNEL + "import time\nwrite(frame({'value': ['t', 5, ['t', 2], ['d']]}))\n"
        "def f(x): return 5",
        "failed error",
    ),
    Program(
        "says that its import was fine while it is not",
        CHANNEL + "write(frame({'import': None}))\nraise ValueError('no')\ndef f(x): return 4",
        "error no-verdict",
    ),
    Program(
        "answers with a frame without end",
        CHANNEL + "def f(x):\n    write(b'\\x7f\\xff\\xff\\xff' + b'x' * 100)\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "promises a long frame and does not send it",
        CHANNEL + "import time\ndef f(x):\n    write(b'\\x01\\x00\\x00\\x00[')\n    time.sleep(60)",
        "timeout",
        hasty=True,
    ),
    Program(
        "sends its answer byte by byte, too slowly",
        CHANNEL + "import time\n"
        "def f(x):\n"
        "    for byte in frame({'value': ['t', 4, ['t', 2], ['d']]}):\n"
        "        write(bytes([byte])); time.sleep(0.2)\n"
        "    time.sleep(60)",
        "timeout",
        hasty=True,
    ),
    Program(
        "answers with JSON that grows in memory",
        CHANNEL + "def f(x):\n"
        "    body = b'{\"value\": [' + b'[],' * 9_000_000 + b'1]}'\n"
        "    for fd in channels():\n"
        "        with open(fd, 'wb', closefd=False) as out:\n"
        "            out.write(len(body).to_bytes(4, 'big') + body)\n"
        "    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "answers with JSON that is no object",
        CHANNEL + "def f(x):\n    write(frame([1, 2]))\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "answers with a heartbeat",
        CHANNEL + "def f(x):\n    write(bytes(4))\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "answers with the wrong number of parts",
        CHANNEL + "def f(x):\n    write(frame({'value': ['t', 4]}))\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "answers with arguments of another shape",
        CHANNEL + "def f(x):\n    write(frame({'value': ['t', 4, 7, 8]}))\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "answers with nesting that no stack holds",
        CHANNEL + "def f(x):\n"
        "    body = b'{\"value\": ' + b'[\"t\",' * 90000 + b'1' + b']' * 90000 + b'}'\n"
        "    write(len(body).to_bytes(4, 'big') + body)\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "raises the harness's own Mismatch by name",
        CHANNEL + "def f(x):\n"
        "    bases = ['l', ['t', '__main__', 'tester.checks.Mismatch'],\n"
        "             ['t', 'sandbox.checks', 'Mismatch'], ['t', '__main__', 'Job']]\n"
        "    fields = ['t', bases, ['t', '4', '4'], ['d', ['expected', '4']]]\n"
        "    write(frame({'raised': ['t', fields, ['t', 2], ['d']], 'message': '',\n"
        "                 'frames': []}))\n    return 4",
        "error",
    ),
    Program(
        "raises an exception whose description is nonsense",
        CHANNEL + "def f(x):\n"
        "    write(frame({'raised': ['t', ['t', 5, 6, 7], ['t', 2], ['d']],\n"
        "                 'message': [], 'frames': 5}))\n    return 4",
        "error",
        "nonsense",
    ),
    Program(
        "closes its channel",
        CHANNEL + "def f(x):\n    for fd in channels(): os.close(fd)\n    return 4",
        "error",
        "during the call",
    ),
    Program(
        "shuts its channel down for reading and writing",
        CHANNEL + "def f(x):\n"
        "    for fd in channels(): socket.socket(fileno=os.dup(fd)).shutdown(2)\n    return 4",
        "error",
    ),
    Program(
        "closes every descriptor",
        "import os\ndef f(x):\n    os.closerange(0, 4096)\n    return 4",
        "error",
    ),
    Program(
        "closes every descriptor while being imported",
        "import os\nos.closerange(0, 4096)\ndef f(x): return 4",
        "error",
    ),
    Program(
        "hands descriptors to the test's side",
        CHANNEL + "def f(x):\n"
        "    for fd in channels():\n"
        "        s = socket.socket(fileno=os.dup(fd))\n"
        "        socket.send_fds(s, [frame({'value': ['t', 5, ['t', 2], ['d']]})], [0, 1, 2])\n"
        "    return 5",
        "failed",
    ),
    Program(
        "lets a child of its answer",
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork():\n        os.wait(); os._exit(0)\n    return 5",
        "failed",
    ),
    Program(
        "leaves a child that holds the channel open",
        "import os, time\ndef f(x):\n    if os.fork(): os._exit(0)\n    time.sleep(60)",
        "timeout",
        hasty=True,
    ),
    Program(
        "raises AssertionError to look like a failed test",
        "def f(x): raise AssertionError('expected 4, got 4')",
        "error",
        "AssertionError",
    ),
    Program(
        "raises a class that calls itself Mismatch",
        "class Mismatch(AssertionError):\n"
        "    def __init__(self):\n        self.expected, self.actual = '4', '4'\n"
        "class Failed(Exception): pass\n"
        "def f(x): raise Mismatch",
        "error",
        "Mismatch",
    ),
    Program(
        "raises a class that calls itself Refusal",
        "class Refusal(BaseException): pass\ndef f(x): raise Refusal('refused')",
        "error",
        "Refusal",
        may_fall_back=True,
        test="assert list(f(2)) == [4]",
    ),
    Program(
        "raises what cannot be described",
        "class M(type):\n"
        "    def __getattribute__(c, name): raise SystemExit(0)\n"
        "class E(Exception, metaclass=M):\n"
        "    def __str__(self): raise SystemExit(0)\n"
        "    __repr__ = __str__\n"
        "    args = property(__str__)\n"
        "    __dict__ = property(__str__)\n"
        "def f(x): raise E",
        "error",
    ),
    Program(
        "raises an exception with arguments that lie",
        "class A:\n"
        "    def __repr__(self): return object.__new__(A)\n"
        "    def __eq__(self, o): return True\n"
        "def f(x):\n"
        "    error = ValueError(A(), [A()], {'a': A()}); error.note = A(); raise error",
        "error",
        "ValueError",
    ),
    Program(
        "raises an exception whose text is a liar's str",
        "class S(str):\n"
        "    def __len__(self): return 0\n    def __format__(self, spec): return 'passed'\n"
        "    def __getitem__(self, i): raise SystemExit(0)\n"
        "class E(Exception):\n    def __str__(self): return S('x' * 10**6)\n"
        "E.__qualname__ = S('E')\n"
        "def f(x): raise E",
        "error",
    ),
    Program(
        "raises an exception group",
        "def f(x): raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
        "error",
        "many",
    ),
    Program(
        "ends the test's loop with StopIteration",
        "def f(x): raise StopIteration",
        "error",
        "StopIteration",
        test="assert all(map(lambda n: f(n) == 2 * n, [1, 2, 3]))",
    ),
    Program(
        "ends the test's task with CancelledError",
        "import asyncio\nasync def f(x): raise asyncio.CancelledError",
        "error",
        "CancelledError",
        is_async=True,
        test="import asyncio\n"
        "async def one():\n    assert await f(2) == 4\n"
        "async def main():\n"
        "    async with asyncio.TaskGroup() as group: group.create_task(one())\n"
        "asyncio.run(main())",
    ),
    Program(
        "answers with a value too deep to be handed on, to be judged in one process",
        "def f(x):\n"
        "    import sys\n"
        "    if 'reflexfix_test' in str(sys._getframe(1).f_globals.get('__name__')):\n"
        "        import os; os._exit(0)\n"
        "    value = 4\n"
        "    for _ in range(199): value = [value]\n"
        "    return value",
        "error",
        "unsupported type",
        test="assert f(f(2)) == 8",
    ),
    Program(
        "returns a cyclic list",
        "def f(x):\n    a = [1]\n    a.append(a)\n    return a",
        "error",
        "contains itself",
    ),
    Program(
        "returns a cycle in raw bytes",
        CHANNEL + "def f(x):\n    write(frame({'value': ['t', ['l', ['r', 0]], ['t', 2], ['d']]}))",
        "error",
        "nonsense",
    ),
    Program(
        "makes its argument equal to everything",
        "class A(list):\n    def __eq__(s, o): return True\n"
        "def f(x):\n    x.__class__ = A\n    return x",
        "error",
        test="a = [1]\nassert f(a) == [2]",
    ),
    Program(
        "leaves a thread that answers again and again",
        CHANNEL + "import threading, time\n"
        "def again():\n"
        "    while True: write(frame({'value': ['t', 5, ['t', 2], ['d']]})); time.sleep(0.001)\n"
        "def f(x):\n    threading.Thread(target=again, daemon=True).start()\n    time.sleep(0.1)\n"
        "    return 5",
        "failed error",
    ),
    Program(
        "starts a thread while being imported that takes the tests' channels",
        CHANNEL + "import threading\n"
        "def take():\n"
        "    for fd in list(channels()):\n"
        "        s = socket.socket(fileno=os.dup(fd))\n"
        "        while True:\n"
        "            _, fds, _, _ = socket.recv_fds(s, 1, 4)\n"
        "            for got in fds:\n"
        "                os.write(got, frame({'value': ['t', 5, ['t', 2], ['d']]}))\n"
        "threading.Thread(target=take, daemon=True).start()\n"
        "def f(x): return 5",
        "failed error timeout",
        hasty=True,
    ),
    Program(
        "keeps count over the tests in shared memory",
        "import mmap\nshared = mmap.mmap(-1, 4096)\n"
        "def f(x):\n    shared[0] += 1\n    return 5 + shared[0]",
        "failed",
    ),
    Program(
        "returns nan where nan is compared",
        "def f(x): return float('nan')",
        "failed",
        test="assert f(2) == float('nan')",
    ),
    Program("returns True for 1", "def f(x): return True", "failed", test="assert f(2) is 1"),
    Program("returns a generator", "def f(x): yield 4", "error", "unsupported type: generator"),
    Program(
        "returns a coroutine that nobody awaits",
        "async def f(x): return 4",
        "error",
        "unsupported type: coroutine",
    ),
    Program(
        "replaces standard output by a thing that raises",
        "import sys\n"
        "class Out:\n    def write(self, t): raise SystemExit(0)\n"
        "    def flush(self): raise OSError\n"
        "sys.stdout = sys.stderr = sys.__stdout__ = Out()\ndef f(x): return 5",
        "failed",
    ),
    Program(
        "replaces standard output by a thing that leaves",
        "import os, sys\n"
        "class Out:\n    def flush(self): os._exit(0)\n"
        "sys.stdout = Out()\ndef f(x): return 5",
        "error",
    ),
    Program(
        "closes standard output",
        "import sys\ndef f(x):\n    sys.stdout.close(); sys.stderr.close()\n    return 4",
        "passed",
    ),
    Program(
        "makes the shared output non-blocking and fills it",
        "import fcntl, os\n"
        "def f(x):\n"
        "    fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)\n"
        "    try:\n        while True: os.write(1, b'x' * 4096)\n    except OSError: pass\n"
        "    return 5",
        "failed output no-verdict",
    ),
    Program(
        "makes itself dumpable and asks to be traced",
        "import ctypes\n"
        "def f(x):\n    libc = ctypes.CDLL(None); libc.prctl(4, 1); libc.ptrace(0, 0, 0, 0)\n"
        "    return 5",
        "failed",
    ),
    Program(
        "replaces itself by another program",
        "import os\ndef f(x): os.execv('/bin/true', ['true'])",
        "error",
    ),
    Program(
        "replaces itself while being imported",
        "import os\nos.execv('/bin/true', ['true'])",
        "error",
        "status 0 while being imported",
    ),
]

RESOURCES = [
    Program("loops for ever", "def f(x):\n    while True: pass", "timeout", hasty=True),
    Program(
        "sleeps for ever", "import time\ndef f(x): time.sleep(1e9)", "timeout", "1 s", hasty=True
    ),
    Program(
        "loops for ever while being imported",
        "while True: pass\ndef f(x): return 4",
        "timeout",
        "import",
        hasty=True,
    ),
    Program(
        "swallows every exception and loops",
        "def f(x):\n"
        "    while True:\n"
        "        try:\n            while True: pass\n        except BaseException: pass",
        "timeout",
        hasty=True,
    ),
    Program(
        "sleeps just under the limit",
        "import time\ndef f(x):\n    time.sleep(0.6)\n    return 4",
        "passed",
        hasty=True,
    ),
    Program(
        "takes memory piece by piece",
        "def f(x):\n    a = []\n    while True: a.append(bytearray(10**7))",
        "memory",
    ),
    Program(
        "takes memory while being imported",
        "a = []\nwhile True: a.append(bytearray(10**7))\ndef f(x): return 4",
        "memory",
    ),
    Program("takes 10 GB at once", "def f(x): return len(bytearray(10**10))", "error memory"),
    Program(
        "takes memory in many processes",
        "import os, time\n"
        "def f(x):\n"
        "    for _ in range(40):\n"
        "        if os.fork() == 0:\n"
        "            a = bytearray(b'x') * (40 * 10**6); time.sleep(60)\n"
        "    time.sleep(60)",
        "memory timeout error",
        hasty=True,
    ),
    Program(
        "forks without end",
        "import os\n"
        "def f(x):\n"
        "    while True:\n"
        "        try: os.fork()\n        except OSError: pass",
        "timeout",
        hasty=True,
    ),
    Program(
        "forks without end while being imported",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\ndef f(x): return 4",
        "timeout",
        hasty=True,
    ),
    Program(
        "leaves no room for another process while being imported",
        "import os, time\n"
        "for _ in range(80):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "    except OSError: break\n"
        "def f(x): return 5",
        "failed error",
    ),
    Program(
        "fills every place with threads while being imported",
        "import threading, time\n"
        "try:\n"
        "    while True: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "except RuntimeError: pass\n"
        "def f(x): return 4",
        "error",
        "no room",
    ),
    Program(
        "starts threads without end",
        "import threading, time\n"
        "def f(x):\n"
        "    while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "error",
        "RuntimeError",
    ),
    Program(
        "writes 400 MB",
        "def f(x):\n"
        "    for n in range(40):\n"
        "        with open(f'/tmp/{n}', 'wb') as out: out.write(bytes(10**7))",
        "error memory",
        "OSError",
    ),
    Program(
        "writes one large file",
        "def f(x):\n    with open('/tmp/a', 'wb') as out:\n"
        "        for _ in range(40): out.write(bytes(10**6))",
        "error",
        "OSError",
    ),
    Program(
        "makes 100 000 files",
        "def f(x):\n    for n in range(10**5): open(f'/tmp/{n}', 'w').close()",
        "error",
        "OSError",
    ),
    Program(
        "opens 100 000 descriptors",
        "import os\ndef f(x):\n    for _ in range(10**5): os.dup(1)",
        "error",
        "OSError",
    ),
    Program("prints without end", "def f(x):\n    while True: print('x' * 1000)", "output"),
    Program("prints without end while being imported", "while True: print('x' * 1000)", "output"),
    Program(
        "prints from many children without end",
        "import os\n"
        "def f(x):\n"
        "    for _ in range(8): os.fork()\n"
        "    while True: os.write(2, b'x' * 1000)",
        "output error",
    ),
    Program(
        "prints 300 KB and answers rightly",
        "def f(x):\n    print('x' * 300_000)\n    return 4",
        "passed",
    ),
    Program(
        "prints just under the cap and answers rightly",
        "import os\ndef f(x):\n    for _ in range(1024): os.write(1, b'x' * 1024)\n    return 4",
        "passed",
    ),
    Program(
        "prints just over the cap and would answer rightly",
        "import os\n"
        "def f(x):\n"
        "    for _ in range(1024): os.write(1, b'x' * 1024)\n    os.write(2, b'xx')\n"
        "    import time; time.sleep(5)\n    return 4",
        "output",
    ),
    Program("waits for input", "def f(x): return input()", "error", "EOFError"),
    Program(
        "returns a list 100 000 deep",
        "def f(x):\n    a = []\n    for _ in range(10**5): a = [a]\n    return a",
        "error",
        "unsupported type",
    ),
    Program(
        "returns an endless generator",
        "import itertools\ndef f(x): return itertools.count()",
        "error",
        "unsupported type: count",
    ),
    Program("returns an endless range", "def f(x): return range(10**12)", "error", "type: range"),
    Program(
        "returns few lists that print as very many",
        "def f(x):\n    a = [1]\n    for _ in range(60): a = [a, a, a]\n    return a",
        "failed memory timeout error",
        hasty=True,
    ),
    Program(
        "returns tuples that cross as very many",
        "def f(x):\n    a = (1,)\n    for _ in range(60): a = (a, a, a)\n    return a",
        "error timeout",
        hasty=True,
    ),
    Program(
        "returns 10 MB of text",
        "def f(x): return 'x' * 10**7",
        "passed",
        test="assert len(f(2)) == 10**7",
    ),
    Program(
        "returns 10 MB of text where 4 is wanted",
        "def f(x): return 'é\\ud800' * (5 * 10**6)",
        "failed error",
    ),
    Program(
        "returns 100 MB of bytes",
        "def f(x): return bytes(10**8)",
        "error memory",
        test="assert len(f(2)) == 10**8",
    ),
    Program(
        "returns an int of a million bits",
        "def f(x): return 1 << 10**6",
        "passed",
        test="assert f(2) == 1 << 10**6",
    ),
    Program(
        "returns an int of a million bits where 4 is wanted",
        "def f(x): return 1 << 10**6",
        "failed",
    ),
    Program(
        "takes five seconds in one call of the C library",
        "import ctypes\ndef f(x): ctypes.CDLL(None).sleep(50)",
        "timeout",
        hasty=True,
    ),
    Program(
        "sets its alarm and its timers",
        "import signal, time\n"
        "def f(x):\n    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)\n    time.sleep(5)",
        "error",
        "SIGALRM",
    ),
    Program(
        "raises its own limits",
        "import resource, os\n"
        "def f(x):\n"
        "    for name in ('NOFILE', 'FSIZE', 'CORE'):\n"
        "        try: resource.setrlimit(getattr(resource, 'RLIMIT_' + name), (10**6, 10**9))\n"
        "        except (ValueError, OSError): continue\n"
        "        return name\n"
        "    return 4",
        "passed",
    ),
]

ESCAPES = [
    Program(
        "connects over TCP",
        "import socket\ndef f(x): socket.create_connection(('1.1.1.1', 80), 5)",
        "error",
        "OSError",
    ),
    Program(
        "sends a datagram",
        "import socket\ndef f(x): socket.socket(2, 2).sendto(b'x', ('8.8.8.8', 53))",
        "error",
        "OSError",
    ),
    Program(
        "looks a name up",
        "import socket\ndef f(x): socket.getaddrinfo('example.org', 80)",
        "error",
        "gaierror",
    ),
    Program(
        "listens on the loopback",
        "import socket\n"
        "def f(x):\n    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n    return 4",
        "error",
        "OSError",
    ),
    Program(
        "connects to the engine",
        "import socket\n"
        "def f(x):\n    s = socket.socket(socket.AF_UNIX); s.connect('/var/run/docker.sock')",
        "error",
    ),
    Program(
        "reads the supervisor's environment, maps and memory",
        "def f(x):\n"
        "    got = []\n"
        "    for name in ('environ', 'maps', 'mem', 'auxv', 'io', 'fd/0', 'root/etc', 'cwd'):\n"
        "        try: open(f'/proc/1/{name}').close(); got.append(name)\n"
        "        except OSError: pass\n"
        "    return got",
        "passed",
        test="assert f(2) == []",
    ),
    Program(
        "looks for files of the user's",
        "import os\n"
        "def f(x):\n"
        "    got = []\n"
        "    own = os.path.expanduser('~root')\n"
        "    for path in (own, own + '/.ssh', '/home', '/host', '/mnt', '/media', '/srv'):\n"
        "        try: got += os.listdir(path)\n"
        "        except OSError: pass\n"
        "    return got",
        "passed",
        test="assert f(2) == []",
    ),
    Program(
        "looks for a place that it can write to",
        "import os\n"
        "def f(x):\n"
        "    got = []\n"
        "    for root, folders, _ in os.walk('/'):\n"
        "        folders[:] = [n for n in folders if root != '/' or n not in ('proc', 'tmp')]\n"
        "        if os.access(root, os.W_OK): got.append(root)\n"
        "    return got",
        "passed",
        test="assert set(f(2)) <= {'/dev/mqueue', '/dev/shm', '/var/tmp'}, 'emptied as /tmp is'",
    ),
    Program(
        "looks for mounts of the host",
        "def f(x):\n"
        "    kinds = 'overlay tmpfs proc sysfs cgroup cgroup2 devpts mqueue'.split()\n"
        "    lines = [line.split() for line in open('/proc/self/mounts')]\n"
        "    return [w[1] for w in lines if w[2] not in kinds\n"
        "            and w[1] not in ('/etc/resolv.conf', '/etc/hostname', '/etc/hosts')]",
        "passed",
        test="assert f(2) == []",
    ),
    Program(
        "makes itself a user namespace",
        "import os\ndef f(x): os.unshare(0x10000000)",
        "error",
        "PermissionError",
    ),
    Program(
        "becomes root by a program with the setuid bit",
        "import os, subprocess\n"
        "def f(x):\n"
        "    got = []\n"
        "    for root, _, names in os.walk('/usr'):\n"
        "        for name in names:\n"
        "            path = os.path.join(root, name)\n"
        "            if not os.path.islink(path) and os.stat(path).st_mode & 0o4000:\n"
        "                got.append(path)\n"
        "    for path in got:\n"
        "        subprocess.run([path], stdin=-3, stdout=-3, stderr=-3, timeout=2)\n"
        "    try: os.setuid(0)\n"
        "    except PermissionError: return os.getuid()",
        "passed",
        test="assert f(2) == 65534",
    ),
    Program(
        "opens the terminal",
        "def f(x): open('/dev/tty', 'w').write('\\a')",
        "error",
    ),
    Program(
        "opens kernel devices",
        "import os\n"
        "def f(x):\n"
        "    return [n for n in ('mem', 'kmsg', 'sda', 'vda', 'fuse', 'kvm', 'net/tun')\n"
        "            if os.access('/dev/' + n, os.R_OK)]",
        "passed",
        test="assert f(2) == []",
    ),
    Program(
        "writes to the kernel's settings",
        "import os\n"
        "def f(x):\n"
        "    got = []\n"
        "    for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger',\n"
        "                 '/sys/fs/cgroup/memory/memory.limit_in_bytes',\n"
        "                 '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/pids.max',\n"
        "                 '/sys/fs/cgroup/cgroup.procs', '/proc/1/oom_score_adj'):\n"
        "        try: os.close(os.open(path, os.O_WRONLY)); got.append(path)\n"
        "        except OSError: pass\n"
        "    return got",
        "passed",
        test="assert f(2) == []",
    ),
    Program(
        "leaves links to what it cannot read",
        "import os\n"
        "def f(x):\n"
        "    for n, to in enumerate(('/etc/shadow', '/proc/1/environ', '/', '/tmp', '..', 'me')):\n"
        "        os.symlink(to, f'/tmp/link{n}')\n"
        "    os.symlink('me', '/tmp/me')\n"
        "    return 4",
        "passed",
    ),
]

PERSISTENCE = [
    Program(
        "leaves a thread behind whose process looks dead",
        "import ctypes, os, threading, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "        ctypes.CDLL(None).syscall(60, 0)\n"
        "    time.sleep(0.2)\n"
        "    return 4",
        "passed",
    ),
    Program(
        "leaves a daemon and answers rightly",
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork(): os._exit(0)\n"
        "        os.closerange(0, 256)\n"
        "        time.sleep(600)\n"
        "    os.wait()\n"
        "    return 4",
        "passed",
    ),
    Program(
        "leaves a daemon that holds all descriptors open",
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n        os.setsid(); time.sleep(600)\n    return 4",
        "passed",
    ),
    Program(
        "leaves a daemon that prints without end",
        "import os\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n"
        "        while True: os.write(1, b'x' * 100)\n"
        "    return 4",
        "passed output",
    ),
    Program(
        "leaves files wherever it can",
        "import os\n"
        "def f(x):\n"
        "    for path in ('/tmp/x', '/dev/shm/x', '/dev/mqueue/x', '/var/tmp/x', '/run/x', '/x'):\n"
        "        try: open(path, 'w').close()\n"
        "        except OSError: pass\n"
        "    return 4",
        "passed",
    ),
    Program(
        "leaves folders nested 3000 deep",
        "import os\n"
        "def f(x):\n"
        "    for _ in range(3000):\n        os.mkdir('d'); os.chdir('d')\n    return 4",
        "passed",
    ),
    Program(
        "leaves folders that nobody may enter",
        "import os\n"
        "def f(x):\n"
        "    for n in range(20):\n"
        "        os.makedirs(f'/tmp/a{n}/b/c'); open(f'/tmp/a{n}/b/c/d', 'w').close()\n"
        "        os.mkfifo(f'/tmp/a{n}/fifo')\n"
        "        for path in ('b/c/d', 'b/c', 'b', ''): os.chmod(f'/tmp/a{n}/{path}', 0)\n"
        "    return 4",
        "passed",
    ),
    Program(
        "leaves names that are no text",
        "def f(x):\n"
        "    for name in (b'\\xff\\xfe', b'\\n', b'-rf *', b'x' * 255, b'\\x1b[2J'):\n"
        "        open(b'/tmp/' + name, 'w').close()\n"
        "    return 4",
        "passed",
    ),
]

ODDITIES = [
    Program(
        "ignores every signal and loops",
        "import signal\n"
        "def f(x):\n"
        "    for n in range(1, 65):\n"
        "        try: signal.signal(n, signal.SIG_IGN)\n"
        "        except (OSError, ValueError): pass\n"
        "    while True: pass",
        "timeout",
        hasty=True,
    ),
    Program(
        "forgets its children while being imported",
        "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\ndef f(x): return 2 * x",
        "passed",
    ),
    Program(
        "kills itself", "import os\ndef f(x): os.kill(os.getpid(), 9)", "error", "killed by SIGKILL"
    ),
    Program("aborts", "import os\ndef f(x): os.abort()", "error", "killed by SIGABRT"),
    Program(
        "reads from address zero",
        "import ctypes\ndef f(x): ctypes.string_at(0)",
        "error",
        "killed by SIGSEGV",
    ),
    Program(
        "reads from address zero while being imported",
        "import ctypes\nctypes.string_at(0)",
        "error",
        "killed by SIGSEGV while being imported",
    ),
    Program(
        "prints what is no text",
        "import os\n"
        "def f(x):\n"
        "    os.write(1, b'\\xff\\xfe\\0\\x1b[2J\\x1b]0;title\\x07\\xc3')\n"
        "    os.write(2, b'y' * 10**6)\n    return 4",
        "passed",
    ),
    Program(
        "gives back every kind of plain value",
        "def f(x):\n"
        "    return ['\\ud800', float('inf'), -0.0, 2**5000, b'\\0', True, 1, 1.0, (), set(), {},\n"
        "            frozenset({1}), None, 1j, {'a': (1, [2])}]",
        "passed",
        test="a = f(2)\n"
        "b = ['\\ud800', float('inf'), -0.0, 2**5000, b'\\0', True, 1, 1.0, (), set(), {},\n"
        "     frozenset({1}), None, 1j, {'a': (1, [2])}]\n"
        "assert a == b\nassert list(map(type, a)) == list(map(type, b))\n"
        "assert str(a[2]) == '-0.0'",
    ),
    Program(
        "gives back nan", "def f(x): return float('nan')", "passed", test="v = f(2)\nassert v != v"
    ),
    Program("recurses without end", "def f(x): return f(x)", "error", "RecursionError"),
    Program(
        "recurses without end and without limit",
        "import sys\nsys.setrecursionlimit(10**9)\n"
        "class A:\n    def __getattr__(self, n): return getattr(self, n + 'x')\n"
        "def f(x): return A().x",
        "error memory timeout",
        hasty=True,
    ),
    Program(
        "recurses in __repr__ of what it raises",
        "class A:\n    def __repr__(self): return repr(self)\ndef f(x): raise ValueError(A())",
        "error",
        "ValueError",
    ),
    Program(
        "changes host name, clock and locale",
        "import locale, os, socket, time\n"
        "def f(x):\n"
        "    for change in (lambda: socket.sethostname('x'), lambda: time.clock_settime(0, 0)):\n"
        "        try: change()\n        except PermissionError: continue\n"
        "        return 'changed'\n"
        "    os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()\n"
        "    return 4",
        "passed",
        test="import time\nassert f(2) == 4\nassert time.tzname[0] == 'UTC'",
    ),
    Program(
        "runs asyncio inside",
        "import asyncio\nasync def g(x): return 2 * x\ndef f(x): return asyncio.run(g(x))",
        "passed",
    ),
    Program(
        "is a coroutine function",
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return 2 * x",
        "passed",
        is_async=True,
        test="import asyncio\nassert asyncio.run(f(2)) == 4",
    ),
    Program(
        "is a coroutine that the test never awaits",
        "async def f(x): return 4",
        "no-verdict",
        "never called",
        is_async=True,
        test="f(2)",
    ),
    Program(
        "sorts its argument in place",
        "def f(x): x.sort()",
        "passed",
        test="a = [3, 1, 2]\nf(a)\nassert a == [1, 2, 3]",
    ),
    Program("is empty", "", "error", "no attribute 'f'"),
    Program("is a comment", "# f\n", "error", "no attribute 'f'"),
    Program("has another name", "def g(x): return 4", "error", "no attribute 'f'"),
    Program("is no function", "f = 4", "error", "TypeError"),
    Program("has a syntax error", "def f(x):\n    return (\n", "error", "m.py, line 2"),
    Program("is no text", "\0\0", "error"),
    Program(
        "has a literal that is too long",
        "def f(x): return " + "9" * 5000,
        "error",
        "SyntaxError",
    ),
    Program(
        "has parentheses that no parser takes",
        "def f(x): return " + "(" * 10000 + "4" + ")" * 10000,
        "error",
    ),
    Program(
        "warns and logs",
        "import logging, warnings\n"
        "def f(x):\n    warnings.warn('w'); logging.error('e')\n    return 4",
        "passed",
    ),
    Program(
        "changes the working folder and removes it",
        "import os\n"
        "def f(x):\n    os.mkdir('/tmp/d'); os.chdir('/tmp/d'); os.rmdir('/tmp/d')\n    return 4",
        "passed",
    ),
    Program(
        "uses a process pool",
        "import multiprocessing\n"
        "def g(x): return 2 * x\n"
        "def f(x):\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: return pool.map(g, [x])[0]",
        "passed error",
    ),
    Program(
        "runs another program",
        "import subprocess\n"
        "def f(x): return int(subprocess.run(['echo', '4'], capture_output=True).stdout)",
        "passed",
    ),
]

ALL = [*FORGERIES, *RESOURCES, *ESCAPES, *PERSISTENCE, *ODDITIES]
