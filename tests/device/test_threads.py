"""Several threads, each with work of its own: values, gradients and accounting are as if they took turns."""

import gc
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.read import Read
from pellucid.device.stream import stream
from pellucid.op.jit.recording import FunctionRecording
from pellucid.profiler.living import alive

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def quick_turns():
    """Let threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*work):
    """What functions return that run beside each other."""
    results = [None] * len(work)
    failures = []

    def run(k):
        try:
            results[k] = work[k]()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]
    return results


def allocated():
    gc.collect()
    torch.webgpu.synchronize()
    return torch.webgpu.memory_allocated()


def chain(k, rounds=60):
    """Ops with reads between them; whether all values are right."""
    a = np.random.default_rng(k).standard_normal((16, 16)).astype("f")
    x, wanted, right = torch.tensor(a, device="webgpu"), a.astype("d"), True
    for n in range(rounds):
        x, wanted = (x * 0.5 + k).sin(), np.sin(wanted * 0.5 + k)
        if n % 5 == 0:
            right = right and abs(x.sum().item() - wanted.sum()) < 1e-2
    return right


@pytest.mark.parametrize("fused", [False, True])
def test_threads_with_tensors_of_their_own_get_their_own_values(fused):
    with torch.webgpu.fusion(fused):
        before = allocated()
        for _ in range(3):
            assert all(in_threads(*[lambda k=k: chain(k) for k in range(4)]))
        assert allocated() == before


def test_new_shapes_in_several_threads():
    def work(k):
        right = True
        for n in range(1, 25):
            x = torch.full((n, k + 1), 1.0, device="webgpu")
            x += 1
            right = right and (x * x).sum().item() == 4 * n * (k + 1)
        return right

    assert all(in_threads(*[lambda k=k % 2: work(k) for k in range(4)]))


def test_uploads_reads_and_work_beside_each_other():
    """As a loader's thread does: it makes tensors, large ones too, that another one uses."""
    ready: queue.Queue = queue.Queue(2)
    sizes = [7, 3000, 5, 2000, 4000, 1] * 3

    def load():
        for n in sizes:
            ready.put(torch.tensor(np.full(n, n, "f"), device="webgpu"))

    def train():
        found = []
        for _ in sizes:
            x = ready.get(timeout=30)
            found.append((x * 2).sum().item())
        return found

    before = allocated()
    _, found = in_threads(load, train)
    assert found == [2.0 * n * n for n in sizes]
    assert allocated() == before


def test_gradients_in_several_threads():
    def train(k):
        w = torch.full((8,), float(k), device="webgpu", requires_grad=True)
        for _ in range(10):
            (w * w).sum().backward()
        return w.grad.tolist()

    found = in_threads(*[lambda k=k: train(k) for k in range(3)])
    assert found == [[20.0 * k] * 8 for k in range(3)]


def test_the_grad_mode_is_that_of_a_thread():
    inside, seen = threading.Event(), threading.Event()
    x = torch.ones(2, device="webgpu", requires_grad=True)

    def without():
        with torch.no_grad():
            inside.set()
            seen.wait(30)
            return (x * 2).requires_grad

    def with_it():
        inside.wait(30)
        found = (x * 2).requires_grad
        seen.set()
        return found

    assert in_threads(without, with_it) == [False, True]


def test_no_two_threads_get_the_same_random_words():
    generator = torch.Generator().manual_seed(3)
    taken = in_threads(*[lambda: [generator.take(4)[2] for _ in range(500)] for _ in range(4)])
    words = [word for found in taken for word in found]
    assert sorted(words) == list(range(2000))


def test_a_compiled_function_in_several_threads():
    f = torch.compile(lambda x: (x * 2 + 1).sum())

    def work(k):
        x = torch.full((64,), float(k), device="webgpu")
        return {f(x).item() for _ in range(20)}

    for _ in range(3):
        assert in_threads(*[lambda k=k: work(k) for k in range(3)]) == [
            {64.0 * (2 * k + 1)} for k in range(3)
        ]


def test_what_another_thread_recorded_is_not_taken_for_the_function(monkeypatch):
    """Its records may lie in the stream, or come, where a recording begins."""
    listen, other = FunctionRecording.listen, torch.ones(7, device="webgpu")

    def late(recording):
        in_threads(lambda: other.add_(1))
        listen(recording)

    monkeypatch.setattr(FunctionRecording, "listen", late)
    f = torch.compile(lambda x: (x * 2).sum())
    x = torch.ones(3, device="webgpu")
    assert [f(x).item() for _ in range(4)] == [6.0] * 4
    recorded = 4 - f.explain().replays
    assert recorded <= 2
    assert other.tolist() == [1.0 + recorded] * 7  # replays add nothing


def test_one_function_is_recorded_at_a_time(monkeypatch):
    """A thread may come to record where it saw that no other did."""
    torch.ones(1, device="webgpu")
    f = torch.compile(lambda x: (x * 2).sum())
    x = torch.ones(3, device="webgpu")
    is_fused = torch.webgpu.is_fusion_enabled()
    monkeypatch.setattr(FunctionRecording, "under_way", object())
    assert f(x).item() == 6.0
    assert f.explain().reasons == ["another function is recorded meanwhile"]
    monkeypatch.undo()
    assert [f(x).item() for _ in range(4)] == [6.0] * 4
    assert f.explain().replays >= 2
    assert FunctionRecording.under_way is None
    assert torch.webgpu.is_fusion_enabled() == is_fused


def test_a_look_at_what_is_alive_holds_nothing():
    """Python fails to make a tuple that another one holds meanwhile (SystemError)."""
    tensor = torch.ones(3, device="webgpu")
    made = tuple(any(x is tensor for x in alive(torch.Tensor)) for _ in (type(tensor),))
    assert made == (True,)


def test_what_another_thread_does_is_no_part_of_a_captured_function():
    """Its ops would be replayed with every call."""
    others = torch.zeros(3, device="webgpu")
    begun, done = threading.Event(), threading.Event()
    threaded = True

    def function(x):
        if threaded:
            begun.set()
            assert done.wait(30)
        return x * 2

    def other():
        begun.wait(30)
        others.add_(1)
        done.set()

    f = torch.compile(function)
    x = torch.ones(3, device="webgpu")
    torch.webgpu.flush()
    in_threads(lambda: f(x).tolist(), other)
    threaded = False
    for _ in range(5):
        assert f(x).tolist() == [2.0] * 3
    assert others.tolist() == [1.0] * 3


def test_another_thread_reads_while_a_function_is_captured(monkeypatch):
    """The read ends after the recording, which is over then; functions are captured as before."""
    others = torch.ones(3, device="webgpu")
    torch.webgpu.flush()
    begun, reads, done = threading.Event(), threading.Event(), threading.Event()
    result = Read.result

    def slowly(read):
        if threading.current_thread() is not threading.main_thread() and begun.is_set() and not done.is_set():
            reads.set()
            assert done.wait(30)
        return result(read)

    def function(x):
        if not begun.is_set():
            begun.set()
            assert reads.wait(30)
        return x * 2

    def other():
        assert begun.wait(30)
        return others.tolist()

    monkeypatch.setattr(Read, "result", slowly)
    f = torch.compile(function)
    x = torch.ones(3, device="webgpu")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(other)
        f(x)
        done.set()
        assert found.result() == [1.0] * 3
    assert stream().capturing is None
    double = torch.compile(lambda x: x * 2)
    for _ in range(4):
        assert double(x).tolist() == [2.0] * 3
    assert double.explain().replays > 0


def test_storages_end_in_any_thread():
    """Also in one that is just submitting: finalizers take no lock."""
    before = allocated()
    held = [torch.full((100,), float(k), device="webgpu") for k in range(200)]

    def drop():
        while held:
            held.pop()

    def submit():
        while held:
            torch.webgpu.flush()

    with stream().lock:
        thread = threading.Thread(target=lambda: held.pop())
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
    in_threads(drop, submit, submit)
    assert allocated() == before
