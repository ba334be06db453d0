"""Plans of everyday ops, compiled with the package, by the hash of the text that `write` makes.

Written by `scripts/reference`; do not edit.
"""

# ruff: noqa
# fmt: off


def make_029852d3231fea6c(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1,  = constants
    def run(a0, a1):
        nonlocal words
        if len(words) > stream.full_at: stream.make_way(0)
        words += (c0, a1._storage.slot, a0._storage.slot, a0._offset, a1._offset,)
        if after: after[0](c1)
        return a0
    return run

def make_18697c00998f61b4(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if len(words) > stream.full_at: stream.make_way(0)
        p1 = c1 if a2 is c2 else known.get(a2) or bits(2, a2)
        words += (c0, a1._storage.slot, a0._storage.slot, a0._offset, a1._offset, p1,)
        if after: after[0](c3)
        return a0
    return run

def make_1a17c5758474058b(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4, c5, c6,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = known.get(a1) or bits(1, a1)
        p3 = c2 if a2 is c3 else known.get(a2) or bits(2, a2)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c4, c1, a0._storage.slot, slot0, a0._offset, p2, p3,)
        s0.nbytes = sizes[slot0] = c4
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c5)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c6
        t0._offset = 0
        return t0
    return run

def make_242c97668dc9e97c(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, slot0, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_29c6c1c0e72c6e7a(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2, a3):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, slot0, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_2c6b81baea23b54e(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, slot0, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_3b55769347bce03c(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2, a3):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = known.get(a1) or bits(1, a1)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, slot0, p2,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_470089fcd31a1648(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = known.get(a1) or bits(1, a1)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, slot0, a0._offset, p2,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_811296999b6def0b(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4, c5, c6,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = c2 if a2 is c3 else known.get(a2) or bits(2, a2)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c4, c1, a0._storage.slot, a1._storage.slot, slot0, a0._offset, a1._offset, p2,)
        s0.nbytes = sizes[slot0] = c4
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c5)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c6
        t0._offset = 0
        return t0
    return run

def make_980077674e117fe6(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a1._storage.slot, slot0, a0._offset, a1._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_a3a278eba77b4efa(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2, a3, a4):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a2._storage.slot, a3._storage.slot, slot0, a0._offset, a2._offset, a3._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_a6b40fb8ab3103e3(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2, a3):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a2._storage.slot, slot0, a0._offset, a2._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_b37fe011f3bcb0a1(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a1._storage.slot, a0._storage.slot, slot0, a0._offset, a1._offset, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_b77fd6d618f66d0a(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a1._storage.slot, a0._storage.slot, slot0, a0._offset, a1._offset, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_ca7f87b6b73de202(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4, c5, c6,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = known.get(a0) or bits(0, a0)
        p3 = c2 if a2 is c3 else known.get(a2) or bits(2, a2)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c4, c1, a1._storage.slot, slot0, p2, a1._offset, p3,)
        s0.nbytes = sizes[slot0] = c4
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c5)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c6
        t0._offset = 0
        return t0
    return run

def make_caf5b95302b7ad19(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2, a3, a4, a5, a6):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = a1 if 0 <= a1 <= 0xFFFFFFFF else int(a1) & 0xFFFFFFFF if -9223372036854775808 <= a1 < 18446744073709551616 else wide(1, a1) or int(a1) & 0xFFFFFFFF
        p3 = a2 if 0 <= a2 <= 0xFFFFFFFF else int(a2) & 0xFFFFFFFF if -9223372036854775808 <= a2 < 18446744073709551616 else wide(2, a2) or int(a2) & 0xFFFFFFFF
        p4 = a3 if 0 <= a3 <= 0xFFFFFFFF else int(a3) & 0xFFFFFFFF if -9223372036854775808 <= a3 < 18446744073709551616 else wide(3, a3) or int(a3) & 0xFFFFFFFF
        p5 = a4 if 0 <= a4 <= 0xFFFFFFFF else int(a4) & 0xFFFFFFFF if -9223372036854775808 <= a4 < 18446744073709551616 else wide(4, a4) or int(a4) & 0xFFFFFFFF
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, slot0, p2, p3, p4, p5,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_f1e5710519684412(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a1._storage.slot, a2._storage.slot, slot0, a0._offset, a1._offset, a2._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_f9cebd53a1a17492(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, slot0, a0._offset,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run

def make_fb27ee8fb835400c(constants, stream, words, free, sizes, ends, partial, after, Storage, Tensor, contiguous, bits, known, wide, Result):
    blank = object.__new__
    c0, c1, c2, c3, c4,  = constants
    def run(a0, a1, a2):
        nonlocal words
        if stream.window_bytes + c0 > stream.bytes_limit or len(words) > stream.full_at:
            stream.make_way(c0)
        p2 = known.get(a2) or bits(2, a2)
        s0 = blank(Storage)
        try:
            slot0 = free.pop()
        except IndexError:
            slot0 = stream.new_slot()
        s0.slot = slot0
        s0.version = 0
        s0.kind = 'activation'
        words += (8 * slot0 + 1, c2, c1, a0._storage.slot, a1._storage.slot, slot0, a0._offset, a1._offset, p2,)
        s0.nbytes = sizes[slot0] = c2
        s0.__del__ = ends[slot0]
        stream.window_bytes += c0
        if after: after[0](c3)
        t0 = blank(Tensor)
        t0._storage = s0
        t0._meta = c4
        t0._offset = 0
        return t0
    return run
