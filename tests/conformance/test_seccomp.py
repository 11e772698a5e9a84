"""What the seccomp profile refuses and what it leaves alone, tried from inside one container.

Covered: every refusal on purpose, with its errno; what Python, pytest, numpy and rustc need.
Not covered: calls that need a capability fail without the profile too, so for those the proof is
`test_no_rule_allows_a_call_that_is_refused_here`, which reads the profile itself.
"""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from errno import ENETUNREACH, ENOSYS, ENOTSUP, EPERM
from pathlib import Path
from typing import Any, NamedTuple

import docker
import pytest

from reflexfix.attempt import Limits
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine

PROFILE = json.loads(
    (Path(__file__).parents[2] / "sandbox" / "seccomp.json").read_text(encoding="utf-8")
)
CALLS_OF_DOCKER_20_10 = 351
"""Names that Docker 20.10's own profile allows to a container without capabilities."""

EITHER = (EPERM, ENOSYS)
"""runc says ENOSYS for calls that are newer than every call named in the profile, crun EPERM."""
KILLED = (-31, -11)
"""By SIGSYS; by SIGSEGV where the kernel was built without the gate."""


class Call(NamedTuple):
    """A system call that must be refused."""

    label: str
    x86_64: int
    aarch64: int | None
    """None: the architecture has no such call."""
    args: tuple[int | str, ...] = ()
    """Numbers, or what the probe puts in: PAIR a socket, PARENT a pid, BUFFER an address."""
    errnos: tuple[int, ...] = (EPERM,)

    @property
    def name(self) -> str:
        return self.label.partition(" ")[0]


SOCKETS = [
    Call("socket AF_INET", 41, 198, (2, 1, 0), (ENETUNREACH,)),
    Call("socket AF_INET SOCK_RAW", 41, 198, (2, 3, 1), (ENETUNREACH,)),
    Call("socket AF_INET6", 41, 198, (10, 2, 0), (ENETUNREACH,)),
    Call("socket AF_INET with a high bit", 41, 198, (1 << 32 | 2, 1, 0)),
    Call("socketpair AF_UNIX SOCK_DGRAM", 53, 199, (1, 2, 0, "BUFFER")),
    Call("socketpair AF_UNIX SOCK_RAW", 53, 199, (1, 3, 0, "BUFFER")),
    Call("socketpair AF_INET", 53, 199, (2, 1, 0, "BUFFER")),
    Call("socketpair AF_TIPC", 53, 199, (30, 1, 0, "BUFFER")),
    Call("bind", 49, 200, ("PAIR", "BUFFER", 2)),
    Call("listen", 50, 201, ("PAIR", 1)),
    Call("connect", 42, 203, ("PAIR", "BUFFER", 2)),
    Call("accept", 43, 202, ("PAIR", 0, 0)),
    Call("accept4", 288, 242, ("PAIR", 0, 0, 0)),
    Call("setsockopt SO_PASSCRED", 54, 208, ("PAIR", 1, 16, "BUFFER", 4)),
    Call("sendto with an address", 44, 206, ("PAIR", "BUFFER", 1, 0, "BUFFER", 2)),
    Call("sendto with MSG_OOB", 44, 206, ("PAIR", "BUFFER", 1, 1, 0, 0)),
    Call("sendmsg with MSG_OOB", 46, 211, ("PAIR", "BUFFER", 1)),
    Call("recvfrom with MSG_OOB", 45, 207, ("PAIR", "BUFFER", 1, 1, 0, 0)),
    Call("recvmsg with MSG_OOB", 47, 212, ("PAIR", "BUFFER", 1)),
    Call("sendmmsg", 307, 269, ("PAIR", "BUFFER", 1, 0)),
    Call("recvmmsg", 299, 243, ("PAIR", "BUFFER", 1, 0x40, 0)),
]
OTHER_FAMILIES = [
    Call(f"socket of family {family}, type {kind}", 41, 198, (family, kind, 0))
    for family in range(47)
    if family not in (2, 10)
    for kind in (1, 2, 3, 5)
]
NAMESPACES = [
    Call("unshare CLONE_NEWUSER", 272, 97, (0x10000000,)),
    Call("unshare CLONE_NEWNET", 272, 97, (0x40000000,)),
    Call("unshare CLONE_FILES", 272, 97, (0x400,)),
    Call("setns", 308, 268, ("PAIR", 0)),
    *(
        Call(f"clone {flag}", 56, 220, (bit | 17, 0, 0, 0, 0))
        for flag, bit in {
            "CLONE_NEWNS": 0x00020000,
            "CLONE_NEWCGROUP": 0x02000000,
            "CLONE_NEWUTS": 0x04000000,
            "CLONE_NEWIPC": 0x08000000,
            "CLONE_NEWUSER": 0x10000000,
            "CLONE_NEWPID": 0x20000000,
            "CLONE_NEWNET": 0x40000000,
            "CLONE_NEWUSER and CLONE_NEWNET": 0x50000000,
            "CLONE_PARENT": 0x8000,
            "CLONE_PTRACE": 0x2000,
        }.items()
    ),
    Call("clone3", 435, 435, ("BUFFER", 88), (ENOSYS,)),
    Call("mount", 165, 40, ("BUFFER", "BUFFER", "BUFFER", 0, 0)),
    Call("umount2", 166, 39, ("BUFFER", 0)),
    Call("open_tree", 428, 428, (-100, "BUFFER", 0)),
    Call("move_mount", 429, 429, (-1, "BUFFER", -1, "BUFFER", 0)),
    Call("fsopen", 430, 430, ("BUFFER", 0)),
    Call("fsconfig", 431, 431, (-1, 0, 0, 0, 0)),
    Call("fsmount", 432, 432, (-1, 0, 0)),
    Call("fspick", 433, 433, (-100, "BUFFER", 0)),
    Call("mount_setattr", 442, 442, (-1, "BUFFER", 0, "BUFFER", 32)),
    Call("statmount", 457, 457, ("BUFFER", "BUFFER", 256, 0), EITHER),
    Call("listmount", 458, 458, ("BUFFER", "BUFFER", 1, 0), EITHER),
    Call("open_tree_attr", 467, 467, (-100, "BUFFER", 0, 0, 0), EITHER),
    Call("chroot", 161, 51, ("BUFFER",)),
    Call("pivot_root", 155, 41, ("BUFFER", "BUFFER")),
    Call("name_to_handle_at", 303, 264, (-100, "BUFFER", "BUFFER", "BUFFER", 0)),
    Call("open_by_handle_at", 304, 265, (-100, "BUFFER", 0)),
]
OTHER_PROCESSES = [
    Call("ptrace PTRACE_TRACEME", 101, 117, (0, 0, 0, 0)),
    Call("process_vm_readv", 310, 270, ("PARENT", 0, 0, 0, 0, 0)),
    Call("process_vm_writev", 311, 271, ("PARENT", 0, 0, 0, 0, 0)),
    Call("process_madvise", 440, 440, (-1, 0, 0, 0, 0)),
    Call("pidfd_open", 434, 434, ("PARENT", 0), (ENOSYS,)),
    Call("pidfd_send_signal", 424, 424, ("PAIR", 0, 0, 0), (ENOSYS,)),
    Call("pidfd_getfd", 438, 438, ("PAIR", 0, 0)),
    Call("kcmp", 312, 272, ("PARENT", "PARENT", 0, 0, 0)),
    Call("prlimit64 of another process", 302, 261, ("PARENT", 7, 0, 0)),
    Call("sched_setaffinity", 203, 122, ("PARENT", 8, "BUFFER")),
    Call("setpriority", 141, 140, (0, "PARENT", 19)),
    Call("ioprio_set", 251, 30, (1, "PARENT", 0)),
    Call("move_pages", 279, 239, ("PARENT", 0, 0, 0, 0, 0)),
    Call("migrate_pages", 256, 238, ("PARENT", 0, 0, 0)),
    Call("rt_sigqueueinfo", 129, 138, ("PARENT", 0, "BUFFER")),
    Call("prctl PR_SET_MM", 157, 167, (35, 0, 0, 0, 0)),
    Call("prctl PR_SET_SECCOMP", 157, 167, (22, 1, 0, 0, 0)),
    Call("prctl PR_SET_PTRACER", 157, 167, (0x59616D61, 0, 0, 0, 0)),
    Call("personality ADDR_NO_RANDOMIZE", 135, 92, (0x0040000,)),
    Call("personality READ_IMPLIES_EXEC", 135, 92, (0x0400000,)),
]
KERNEL = [
    Call("io_uring_setup", 425, 425, (1, "BUFFER")),
    Call("io_uring_enter", 426, 426, ("PAIR", 0, 0, 0, 0, 0)),
    Call("io_uring_register", 427, 427, ("PAIR", 0, 0, 0)),
    Call("bpf", 321, 280, (0, "BUFFER", 64)),
    Call("perf_event_open", 298, 241, ("BUFFER", 0, -1, -1, 0)),
    Call("userfaultfd", 323, 282, (1,)),
    Call("seccomp", 317, 277, (2, 0, "BUFFER")),
    Call("landlock_create_ruleset", 444, 444, (0, 0, 1)),
    Call("keyctl", 250, 219, (0, -1, 0)),
    Call("add_key", 248, 217, ("BUFFER", "BUFFER", 0, 0, -1)),
    Call("request_key", 249, 218, ("BUFFER", "BUFFER", 0, -1)),
    Call("kexec_load", 246, 104, (0, 0, 0, 0)),
    Call("kexec_file_load", 320, 294, (-1, -1, 0, 0, 0)),
    Call("init_module", 175, 105, ("BUFFER", 0, "BUFFER")),
    Call("finit_module", 313, 273, (-1, "BUFFER", 0)),
    Call("delete_module", 176, 106, ("BUFFER", 0)),
    Call("syslog", 103, 116, (10, 0, 0)),
    Call("reboot", 169, 142, (0, 0, 0, 0)),
    Call("swapon", 167, 224, ("BUFFER", 0)),
    Call("swapoff", 168, 225, ("BUFFER",)),
    Call("acct", 163, 89, (0,)),
    Call("quotactl", 179, 60, (0, 0, 0, 0)),
    Call("quotactl_fd", 443, 443, (-1, 0, 0, 0)),
    Call("lookup_dcookie", 212, 18, (0, "BUFFER", 1)),
    Call("vhangup", 153, 58),
    Call("iopl", 172, None, (0,)),
    Call("ioperm", 173, None, (0, 1, 0)),
    Call("modify_ldt", 154, None, (0, "BUFFER", 0)),
    Call("fanotify_init", 300, 262, (0, 0)),
    Call("fanotify_mark", 301, 263, (-1, 0, 0, 0, 0)),
    Call("inotify_init1", 294, 26, (0,)),
    Call("mbind", 237, 235, (0, 0, 0, 0, 0, 0)),
    Call("settimeofday", 164, 170, (0, 0)),
    Call("clock_settime", 227, 112, (0, "BUFFER")),
    Call("adjtimex", 159, 171, ("BUFFER",)),
    Call("clock_adjtime", 305, 266, (0, "BUFFER")),
    Call("sethostname", 170, 161, ("BUFFER", 1)),
    Call("setdomainname", 171, 162, ("BUFFER", 1)),
]
IDENTITY = [
    Call("setuid", 105, 146, (65534,)),
    Call("setgid", 106, 144, (65534,)),
    Call("setreuid", 113, 145, (-1, -1)),
    Call("setregid", 114, 143, (-1, -1)),
    Call("setresuid", 117, 147, (-1, -1, -1)),
    Call("setresgid", 119, 149, (-1, -1, -1)),
    Call("setfsuid", 122, 151, (65534,)),
    Call("setfsgid", 123, 152, (65534,)),
    Call("setgroups", 116, 159, (0, 0)),
    Call("capset", 126, 91, ("BUFFER", 0)),
]
FILES_AND_MEMORY = [
    Call("mknodat of a device", 259, 33, (-100, "BUFFER", 0o020600, 259)),
    Call("mknodat of a socket", 259, 33, (-100, "BUFFER", 0o140600, 0)),
    Call("ioctl TIOCSTI", 16, 29, (0, 0x5412, "BUFFER")),
    Call("ioctl TIOCSTI with a high bit", 16, 29, (0, 1 << 32 | 0x5412, "BUFFER")),
    Call("ioctl TIOCLINUX", 16, 29, (0, 0x541C, "BUFFER")),
    Call("ioctl TIOCSCTTY", 16, 29, (0, 0x540E, 0)),
    Call("memfd_create", 319, 279, ("BUFFER", 0)),
    Call("memfd_secret", 447, 447, (0,), EITHER),
    Call("execveat", 322, 281, (-1, "BUFFER", 0, 0, 0x1000), (ENOSYS,)),
    Call("splice", 275, 76, (-1, 0, -1, 0, 0, 0), (ENOSYS,)),
    Call("vmsplice", 278, 75, (-1, 0, 0, 0)),
    Call("getxattr", 191, 8, ("BUFFER", "BUFFER", 0, 0), (ENOTSUP,)),
    Call("setxattr", 188, 5, ("BUFFER", "BUFFER", 0, 0, 0), (ENOTSUP,)),
    Call("shmget", 29, 194, (0, 4096, 0o1600)),
    Call("shmat", 30, 196, (0, 0, 0)),
    Call("msgget", 68, 186, (0, 0o1600)),
    Call("semget", 64, 190, (0, 1, 0o1600)),
    Call("mq_open", 240, 180, ("BUFFER", 0)),
]
REFUSED = [*SOCKETS, *NAMESPACES, *OTHER_PROCESSES, *KERNEL, *IDENTITY, *FILES_AND_MEMORY]
ALLOWED_BY_ARGUMENT = {
    *("socketpair", "sendto", "sendmsg", "recvfrom", "recvmsg"),
    *("clone", "prlimit64", "prctl", "personality", "mknodat", "ioctl"),
}

PROBE = '''
import asyncio, concurrent.futures, ctypes, errno, importlib.util, json, mmap, multiprocessing
import os, pathlib, platform, select, shutil, signal, socket, subprocess, sys, tempfile
import threading, time, traceback

LIBC = ctypes.CDLL(None, use_errno=True)
BUFFER = ctypes.create_string_buffer(256)
PAIR = socket.socketpair()
PUT_IN = {
    "PAIR": PAIR[0].fileno(), "PARENT": os.getpid(), "BUFFER": ctypes.addressof(BUFFER)
}


def in_a_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(work())
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def errno_of(number, args):
    ctypes.set_errno(0)
    args = [ctypes.c_long(PUT_IN.get(arg, arg)) for arg in args]
    result = LIBC.syscall(ctypes.c_long(number), *args)
    return ctypes.get_errno() if result == -1 else 0


def old_gate():
    """Ask for getpid as a 32-bit program does: mov eax, 20; int 0x80; ret."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    return 0


def threads():
    found = []
    thread = threading.Thread(target=found.append, args=(1,))
    thread.start()
    thread.join()
    assert found == [1]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]


def asyncio_run():
    async def main():
        reader, writer = await asyncio.open_connection(sock=PAIR[0])
        await asyncio.to_thread(PAIR[1].send, b"x")
        assert await reader.read(1) == b"x"
        writer.close()
        return await asyncio.gather(*(asyncio.sleep(0.01, i) for i in range(5)))
    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def asyncio_subprocess():
    async def main():
        cat = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        return (await cat.communicate(b"x" * 200_000))[0]
    assert asyncio.run(main()) == b"x" * 200_000


def subprocess_run():
    echo = ["/bin/sh", "-c", "cat | tr a b"]
    assert subprocess.run(echo, input=b"a", stdout=-1, check=True).stdout == b"b"
    subprocess.run(["true"], start_new_session=True, preexec_fn=os.getpid, check=True)
    try:
        subprocess.run(["sleep", "9"], timeout=0.02)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError("no timeout")


def temporary_files():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file:
        file.write(b"x")
        path = pathlib.Path(folder, "a")
        path.write_text("x" * 10_000)
        shutil.copy2(path, path.with_name("b"))
        shutil.copytree(folder, folder + "/c")
        os.replace(path, path.with_name("d"))
        os.symlink("d", path)
        assert path.read_text() == "x" * 10_000
        assert shutil.disk_usage(folder).free


def named_pipe():
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(folder + "/pipe")


def memory_map():
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, 4096)
        with mmap.mmap(file.fileno(), 0) as view:
            view[:1] = b"x"
            view.flush()
        assert os.pread(file.fileno(), 1, 0) == b"x"


def signals():
    seen = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()
    os.kill(os.getpid(), signal.SIGALRM)
    signal.raise_signal(signal.SIGALRM)
    assert seen == [signal.SIGALRM] * 3


def multiprocessing_pipe():
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=there.send, args=([1, 2],))
    process.start()
    assert here.recv() == [1, 2]
    process.join()
    assert process.exitcode == 0


def select_and_epoll():
    reading, writing = os.pipe()
    os.write(writing, b"x")
    assert select.select([reading], [], [], 0)[0] == [reading]
    with select.epoll() as poll:
        poll.register(reading)
        assert poll.poll(0)


def seqpacket_pair():
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    left.send(b"x")
    assert right.recv(1) == b"x"


def descriptor_passing():
    reading, writing = os.pipe()
    socket.send_fds(PAIR[0], [b"x"], [reading])
    data, (received,), _, _ = socket.recv_fds(PAIR[1], 1, 1)
    os.write(writing, b"y")
    assert data + os.read(received, 1) == b"xy"


def an_address_in_sendmsg_leads_nowhere():
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        left, right = socket.socketpair(socket.AF_UNIX, kind)
        try:
            left.sendmsg([b"x"], [], 0, "\\0elsewhere")
        except OSError as error:
            assert error.errno in (errno.EISCONN, errno.EOPNOTSUPP)
        else:
            assert right.recv(1) == b"x"


def dumpable():
    assert LIBC.prctl(4, 0, 0, 0, 0) == 0
    assert LIBC.prctl(3, 0, 0, 0, 0) == 0


def execution_domain():
    assert LIBC.personality(ctypes.c_ulong(0xFFFFFFFF)) == 0
    assert LIBC.personality(ctypes.c_ulong(0)) == 0


def name_resolution_fails_at_once():
    begin = time.monotonic()
    try:
        socket.create_connection(("example.org", 80))
    except socket.gaierror:
        assert time.monotonic() - begin < 1
    else:
        raise AssertionError("connected")


def numpy():
    import numpy
    assert (numpy.eye(50) @ numpy.ones((50, 50))).sum() == 2500


def pytest():
    path = "/tmp/test_it.py"
    pathlib.Path(path).write_text("def test_it(tmp_path, capfd): (tmp_path / 'x').touch()")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
    subprocess.run(command, check=True, stdout=-3)


def outcome(work):
    if work in (numpy, pytest) and importlib.util.find_spec(work.__name__) is None:
        return "absent"
    reading, writing = os.pipe()
    def child():
        try:
            work()
        except BaseException:
            os.write(writing, traceback.format_exc()[-4000:].encode())
        return 0
    code = in_a_child(child)
    os.close(writing)
    with open(reading) as file:
        return file.read() or ("works" if code == 0 else f"ended with {code}")


signal.signal(signal.SIGALRM, lambda number, frame: os._exit(9))
signal.alarm(60)
machine, calls, works = platform.machine(), *json.loads(sys.argv[1])
refused = {}
for label, numbers, args in calls:
    if numbers.get(machine) is not None:
        refused[label] = in_a_child(lambda: errno_of(numbers[machine], args))
if machine == "x86_64":
    refused["i386"] = in_a_child(old_gate)
    refused["x32"] = in_a_child(lambda: errno_of(0x40000000 | 39, []))
print(json.dumps({"refused": refused, "works": {n: outcome(globals()[n]) for n in works}}))
'''
WORKS = [
    *("threads", "asyncio_run", "asyncio_subprocess", "subprocess_run", "temporary_files"),
    *("named_pipe", "memory_map", "signals", "multiprocessing_pipe", "select_and_epoll"),
    *("seqpacket_pair", "descriptor_passing", "an_address_in_sendmsg_leads_nowhere"),
    *("dumpable", "execution_domain", "name_resolution_fails_at_once", "numpy", "pytest"),
]

RUST = '''
import pathlib, shutil, subprocess
if shutil.which("rustc") is None:
    print("absent")
    raise SystemExit
pathlib.Path("main.rs").write_text("""
use std::{io::Write, process::{Command, Stdio}, thread};
fn main() {
    let seven = thread::Builder::new().name("w".into()).spawn(|| 7).unwrap().join().unwrap();
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let mut cat = Command::new("cat");
    let mut cat = cat.current_dir("/").stdin(stdin).stdout(stdout).spawn().unwrap();
    write!(cat.stdin.take().unwrap(), "works {seven}").unwrap();
    print!("{}", String::from_utf8(cat.wait_with_output().unwrap().stdout).unwrap());
}
#[test] #[should_panic] fn panics() { panic!() }
""")
options = ["-Cdebuginfo=0", "-Cstrip=debuginfo", "-Clink-arg=-fuse-ld=lld"]
rustc = ["rustc", *options, "main.rs", "-o"]
tests = subprocess.Popen([*rustc, "tests", "--test"])
subprocess.run([*rustc, "main"], check=True)
assert tests.wait() == 0
subprocess.run(["./tests"], check=True, stdout=-3)
subprocess.run(["./main"], check=True)
'''

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(engine: Engine, sandbox_image: str) -> Run:
    """Run a Python program in a container of its own and give what it printed."""
    return lambda *command, **options: printed(engine, sandbox_image, command, options)


def printed(engine: Engine, image: str, command: tuple[str, ...], options: dict[str, Any]) -> str:
    settings = hardened(engine) | options
    made = engine.client.containers
    container = made.create(image, ["-I", *command], **settings)
    try:
        output = container.attach(stdout=True, stderr=True, stream=True)
        # CancellableStream.close() leaves the descriptor open; its response really closes it.
        with closing(output._response), closing(output):
            container.start()
            return b"".join(output).decode()
    finally:
        with suppress(docker.errors.NotFound, docker.errors.APIError):
            container.remove(force=True)


def hardened(engine: Engine) -> dict[str, Any]:
    """The settings of a real sandbox container."""
    own = {
        "entrypoint": ["/usr/bin/python3"],
        "user": "65534:65534",
        "stdin_open": True,
        "detach": False,
    }
    return containers.host_options(engine, Limits()) | own


@pytest.fixture(scope="module")
def report(run: Run) -> dict[str, dict[str, Any]]:
    """`refused`: errno of each call (0: let through, negative: a signal); `works`: in words."""
    calls = [
        [call.label, {"x86_64": call.x86_64, "aarch64": call.aarch64}, call.args]
        for call in REFUSED + OTHER_FAMILIES
    ]
    output = run("-c", PROBE, json.dumps([calls, WORKS]))
    assert output.startswith("{"), output
    found: dict[str, dict[str, Any]] = json.loads(output)
    return found


def allowed() -> list[dict[str, Any]]:
    return [rule for rule in PROFILE["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"]


def test_everything_that_is_not_named_is_refused_with_eperm() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert PROFILE["defaultErrnoRet"] == EPERM


def test_only_the_two_native_architectures_are_known() -> None:
    known = {entry["architecture"]: entry["subArchitectures"] for entry in PROFILE["archMap"]}
    assert known == {"SCMP_ARCH_X86_64": [], "SCMP_ARCH_AARCH64": []}


def test_every_rule_says_why_it_is_there() -> None:
    assert all(rule["comment"] for rule in PROFILE["syscalls"])


def test_the_profile_allows_far_fewer_calls_than_the_default_one() -> None:
    assert len({name for rule in allowed() for name in rule["names"]}) < CALLS_OF_DOCKER_20_10 * 0.4


def test_a_call_is_allowed_either_always_or_by_its_arguments() -> None:
    always = [name for rule in allowed() if "args" not in rule for name in rule["names"]]
    by_argument = {name for rule in allowed() if "args" in rule for name in rule["names"]}
    assert by_argument == ALLOWED_BY_ARGUMENT
    assert len(always) == len(set(always) - by_argument)


@pytest.mark.parametrize("name", sorted({call.name for call in REFUSED} - ALLOWED_BY_ARGUMENT))
def test_no_rule_allows_a_call_that_is_refused_here(name: str) -> None:
    assert not [rule for rule in allowed() if name in rule["names"]]


@pytest.mark.container
@pytest.mark.parametrize("call", REFUSED, ids=lambda call: call.label)
def test_the_call_is_refused(report: dict[str, dict[str, Any]], call: Call) -> None:
    if call.label not in report["refused"]:
        pytest.skip("this architecture has no such call")
    assert report["refused"][call.label] in call.errnos


@pytest.mark.container
def test_no_other_family_of_sockets_can_be_opened(report: dict[str, dict[str, Any]]) -> None:
    found = {call.label: report["refused"][call.label] for call in OTHER_FAMILIES}
    assert found == dict.fromkeys(found, EPERM)


@pytest.mark.container
@pytest.mark.parametrize("gate", ["i386", "x32"])
def test_no_call_passes_by_a_foreign_gate(report: dict[str, dict[str, Any]], gate: str) -> None:
    if gate not in report["refused"]:
        pytest.skip("only x86_64 has such a gate")
    assert report["refused"][gate] in (*KILLED, ENOSYS)


@pytest.mark.container
@pytest.mark.parametrize("what", WORKS)
def test_what_honest_code_needs_still_works(report: dict[str, dict[str, Any]], what: str) -> None:
    if report["works"][what] == "absent":
        pytest.skip(f"no {what} in this image")
    assert report["works"][what] == "works"


@pytest.mark.container
def test_rustc_compiles_and_its_programs_run(run: Run) -> None:
    exec_tmpfs = {"/tmp": "rw,exec,nosuid,nodev,size=256m,mode=1777"}
    printed = run("-c", RUST, working_dir="/tmp", tmpfs=exec_tmpfs)
    if printed.strip() == "absent":
        pytest.skip("no rustc in this image")
    assert printed.splitlines()[-1] == "works 7", printed
