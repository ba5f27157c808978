"""Random programs whose behaviour changes in the middle, by state in all kinds of odd places.

:func:`program` gives the source of one: a random linear algorithm, and a place in which it keeps
what changes it, at a random round or with a small probability.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Place:
    """Where a program keeps what decides a round.

    ``top`` is code of its module, ``begin`` code before its first round, and ``each`` code of every
    round, which sets ``odd``. ``T`` stands for a round, ``P`` for a small probability and ``SEED``
    for a number. ``is_followed`` says that it is state of the run itself, which must be traced.
    """

    name: str
    each: str
    begin: str = ""
    top: str = ""
    is_followed: bool = False


def _counted(name: str, increase: str, now: str, begin: str = "", top: str = "") -> Place:
    return Place(name, f"{increase}\nodd = {now} > T", begin, top)


def _own(name: str, each: str, begin: str = "", top: str = "") -> Place:
    return Place(name, each, begin, top, is_followed=True)


PLACES = [
    # What all runs share.
    _counted("global", "count += 1", "count", "global count", "count = 0"),
    _counted("global, begun anew", "count += 1", "count", "global count\ncount = 0", "count = 0"),
    _counted("globals()", "globals()['k'] += 1", "globals()['k']", "globals()['k'] = 0"),
    _counted("a function's attribute", "rule.n += 1", "rule.n", "rule.n = 0"),
    _counted("a class attribute", "K.n += 1", "K.n", "K.n = 0", "class K: pass"),
    _counted("type()", "type(k).n += 1", "k.n", "k = K(); K.n = 0", "class K: n = 0"),
    _counted("a default argument", "odd = tick()", "tick()", top="def tick(n=[0]):\n    n[0] += 1\n    return n[0]"),
    _counted("keyword defaults", "tick()", "tick()", top="def tick(*, n={'a': 0}):\n    n['a'] += 1\n    return n['a'] / 2"),
    _counted("a closure", "", "tick()", top="def make():\n    n = 0\n    def tick():\n        nonlocal n\n        n += 1\n        return n\n    return tick\ntick = make()"),
    _counted("a helper's attribute", "HELPER.t += 1", "HELPER.t", "HELPER.t = 0", "import HELPER"),
    _counted("a helper's function", "", "HELPER.tick()", "HELPER.restart()", "import HELPER"),
    _counted("a helper's function by name", "", "tick()", "restart()", "from HELPER import tick, restart"),
    _counted("a helper in an object", "k.m.t += 1", "k.m.t", "k = types.SimpleNamespace(m=HELPER); HELPER.t = 0", "import types, HELPER"),
    _counted("an import in a round", "import HELPER\nHELPER.t += 1", "HELPER.t", top="import HELPER"),
    _counted("getattr of a helper", "setattr(HELPER, 't', getattr(HELPER, 't') + 1)", "getattr(HELPER, 't')", top="import HELPER"),
    _counted("a computed name of a helper", "", "getattr(HELPER, 'ti' + 'ck')()", top="import HELPER"),
    _counted("vars of a helper", "vars(HELPER)['t'] += 1", "vars(HELPER)['t']", top="import HELPER"),
    _counted("importlib", "", "importlib.import_module('HELPER').tick()", top="import importlib, HELPER"),
    _counted("sys.modules", "", "sys.modules['HELPER'].tick()", top="import sys, HELPER"),
    _counted("__import__", "", "__import__('HELPER').tick()", top="import HELPER"),
    _counted("builtins", "builtins.odd_count = getattr(builtins, 'odd_count', 0) + 1", "builtins.odd_count", top="import builtins"),
    _counted("os.environ", "os.environ['ODD'] = str(int(os.environ.get('ODD', '0')) + 1)", "int(os.environ['ODD'])", "os.environ['ODD'] = '0'", "import os"),
    _counted("os.putenv's sibling", "os.environ.update(ODD2=os.environ.get('ODD2', '') + 'x')", "len(os.environ['ODD2'])", top="import os"),
    _counted("a context variable", "VAR.set(VAR.get() + 1)", "VAR.get()", "VAR.set(0)", "import contextvars\nVAR = contextvars.ContextVar('v', default=0)"),
    _counted("threading.local", "here.n = getattr(here, 'n', 0) + 1", "here.n", top="import threading\nhere = threading.local()"),
    _counted("lru_cache of a dict", "box()['n'] += 1", "box()['n']", top="import functools\n@functools.lru_cache\ndef box(): return {'n': 0}"),
    _counted("lru_cache without a bound", "box()[0] += 1", "box()[0]", top="import functools, numpy\n@functools.lru_cache(maxsize=None)\ndef box(): return numpy.zeros(1)"),
    _counted("hits of a cache", "same(1)", "same.cache_info().hits", "same.cache_clear()", "import functools\n@functools.lru_cache\ndef same(x): return x"),
    _counted("a cache that counts", "seen(len(found))", "len(found)", top="import functools\nfound = []\n@functools.lru_cache\ndef seen(k):\n    found.append(k)\n    return k"),
    _counted("an iterator of the module", "", "next(numbers)", top="numbers = iter(range(10 ** 9))"),
    _counted("itertools.count of the module", "", "next(numbers)", top="import itertools\nnumbers = itertools.count()"),
    _counted("a generator of the module", "", "next(numbers)", top="def upwards():\n    n = 0\n    while True:\n        n += 1\n        yield n\nnumbers = upwards()"),
    _counted("an array of the module", "np.add(kept, 1, out=kept)", "kept[0]", "kept[:] = 0", "import numpy\nkept = numpy.zeros(2)"),
    _counted("a view of an array of the module", "view[0] += 1", "kept[0]", "view = kept[:1]", "import numpy\nkept = numpy.zeros(2)"),
    _counted("an array in a tuple", "kept[0][0] += 1", "kept[0][0]", "kept[0][0] = 0", "import numpy\nkept = (numpy.zeros(2), 1)"),
    _counted("an array of objects", "kept[0] += 1", "kept[0]", "kept[0] = 0", "import numpy\nkept = numpy.array([0, None], dtype=object)"),
    _counted("a metaclass", "", "len(K)", top="class M(type):\n    n = 0\n    def __len__(cls):\n        M.n += 1\n        return M.n\nclass K(metaclass=M): pass"),
    _counted("a descriptor", "", "k.n", "k = K()", "class D:\n    n = 0\n    def __get__(self, one, kind):\n        self.n += 1\n        return self.n\nclass K: n = D()"),
    _counted("a property", "", "k.n", "k = K()", "class K:\n    made = []\n    @property\n    def n(self):\n        self.made.append(1)\n        return len(self.made)"),
    _counted("__getattr__ of a module", "", "HELPER.unknown", top="import HELPER"),
    _counted("an operator of a class", "", "len([one for one in K()])", top="class K:\n    n = []\n    def __iter__(self):\n        self.n.append(1)\n        return iter(self.n)"),
    _counted("a subclass of list", "k.append(1)", "len(k)", "k = K.one", "class K(list): pass\nK.one = K()"),
    _counted("a deque of the module", "kept.append(1)", "len(kept)", "kept.clear()", "from collections import deque\nkept = deque()"),
    _counted("a defaultdict of the module", "kept['a'] += 1", "kept['a']", "kept.clear()", "from collections import defaultdict\nkept = defaultdict(int)"),
    _counted("a bytearray of the module", "kept.append(1)", "len(kept)", top="kept = bytearray()"),
    _counted("a set of the module", "kept.add(len(kept))", "len(kept)", "kept.clear()", "kept = set()"),
    _counted("a queue", "kept.put(1)", "kept.qsize()", top="import queue\nkept = queue.SimpleQueue()"),
    _counted("an enum", "Mode.A.n = getattr(Mode.A, 'n', 0) + 1", "Mode.A.n", top="import enum\nclass Mode(enum.Enum): A = 1"),
    _counted("a partial", "tick()", "len(tick.args[0])", top="import functools\ndef add(kept): kept.append(1)\ntick = functools.partial(add, [])"),
    _counted("a bound method", "add(1)", "len(kept)", top="kept = []\nadd = kept.append"),
    _counted("a print option", "numpy.set_printoptions(precision=numpy.get_printoptions()['precision'] + 1)", "numpy.get_printoptions()['precision'] - 8", "numpy.set_printoptions(precision=8)", "import numpy"),
    _counted("decimal's context", "decimal.getcontext().prec += 1", "decimal.getcontext().prec - 28", "decimal.getcontext().prec = 28", "import decimal"),
    _counted("the recursion limit", "sys.setrecursionlimit(sys.getrecursionlimit() + 1)", "sys.getrecursionlimit() - 3000", "sys.setrecursionlimit(3000)", "import sys"),
    _counted("a file", "with open(FILE, 'a') as file: file.write('x')", "os.path.getsize(FILE)", top="import os"),
    _counted("warnings", "warnings.simplefilter('ignore', append=True)\nwarnings.filters.append(None)", "len(warnings.filters) - SIZE", "del warnings.filters[SIZE:]", "import warnings\nSIZE = len(warnings.filters)"),
    _counted("weak references", "kept[K()] = 1\nmade.append(K()); kept[made[-1]] = 1", "len(kept)", "made.clear()", "import weakref\nclass K: pass\nkept, made = weakref.WeakKeyDictionary(), []"),
    _counted("code that is replaced", "calls.append(1)\nif len(calls) > T: rule2 = yes", "rule2() * (T + 1)", "global rule2\ncalls.clear()\nrule2 = no", "calls = []\ndef no(): return 0\ndef yes(): return 1\nrule2 = no"),
    _counted("a method that is replaced", "k.n += 1\nif k.n > T: K.go = yes", "k.go() * (T + 1)", "k = K(); K.go = no", "def no(self): return 0\ndef yes(self): return 1\nclass K:\n    n = 0\n    go = no"),
    _counted("an iterator in a cache", "", "next(numbers())", top="import functools, itertools\n@functools.lru_cache\ndef numbers(): return itertools.count()"),
    _counted("a logger that is looked up", "k = logging.getLogger('odd')\nk.n = getattr(k, 'n', 0) + 1", "k.n", top="import logging"),
    _counted("the level of a logger", "log.setLevel(log.level + 1)", "log.level", "log.setLevel(0)", "import logging\nlog = logging.getLogger('odd2')"),
    _counted("what is registered", "", "tick()", top="import abc\nclass K(abc.ABC): pass\nkept = [type('A', (), {}) for _ in range(9999)]\ndef tick():\n    n = sum(issubclass(one, K) for one in kept[:99])\n    K.register(kept[n])\n    return n"),
    _counted("a class that is registered", "if not issubclass(MADE[k.n], numbers.Number): numbers.Number.register(MADE[k.n])\nk.n += 1", "sum(issubclass(one, numbers.Number) for one in MADE)", "k = K()", "import numbers\nclass K: n = 0\nMADE = [type('A', (), {}) for _ in range(2000)]"),
    _counted("an object in a slice", "kept.stop.n += 1", "kept.stop.n", "kept.stop.n = 0", "class K:\n    n = 0\n    def __repr__(self): return 'K'\nkept = slice(K())"),
    _counted("metadata of a dtype", "kept.metadata['n'][0] += 1", "kept.metadata['n'][0]", "kept.metadata['n'][0] = 0", "import numpy\nkept = numpy.dtype(float, metadata={'n': [0]})"),
    _counted("metadata of an array's dtype", "kept.dtype.metadata['n'][0] += 1", "kept.dtype.metadata['n'][0]", "kept.dtype.metadata['n'][0] = 0", "import numpy\nkept = numpy.zeros(1, numpy.dtype(float, metadata={'n': [0]}))"),
    _counted("the name of a function", "setattr(rule, '__qualname__', getattr(rule, '__qualname__') + 'x')", "len(getattr(rule, '__qualname__'))", "setattr(rule, '__qualname__', '')"),
    _counted("a field of an exception", "kept.characters_written += 1", "kept.characters_written", "kept.characters_written = 0", "kept = BlockingIOError(1, 'x', 0)"),
    _counted("the order of a set", "k += 1\nif k == T:\n    kept.update(range(20, 60))\n    kept.difference_update(range(20, 60))", "list(kept)[0] * T * 2", "k = 0\nkept.clear()\nkept.update((8, 1))", "kept = set()"),
    # Draws.
    Place("random, seeded", "odd = random.random() < P", "random.seed(SEED)", "import random"),
    Place("random", "odd = random.random() < P", "", "import random"),
    Place("random by name", "odd = draw() < P", "", "from random import random as draw"),
    Place("random's choice", "odd = pick(range(100)) < 100 * P", "", "from random import choice as pick"),
    Place("np.random, seeded", "odd = np.random.rand() < P", "np.random.seed(SEED)"),
    Place("np.random", "odd = np.random.rand() < P"),
    Place("np.random by name", "odd = rand() < P", "", "from numpy.random import rand"),
    Place("np.random late", "k += 1\nodd = k > T and np.random.rand() < 0.5", "k = 0"),
    Place("np in a name", "odd = m.random.rand() < P", "m = np"),
    Place("np.random from getattr", "odd = getattr(np, 'random').rand() < P"),
    Place("a generator of all runs", "odd = draws.random() < P", "", "import numpy\ndraws = numpy.random.default_rng(SEED)"),
    Place("a Random of all runs", "odd = draws.random() < P", "", "import random\ndraws = random.Random(SEED)"),
    Place("no seed", "odd = np.random.default_rng().random() < P"),
    Place("None for a seed", "odd = draws.random() < P", "none = None\ndraws = np.random.default_rng(none)"),
    Place("a Random without a seed", "odd = random.Random().random() < P", "", "import random"),
    Place("make of another name", "odd = make().random() < P", "make = np.random.default_rng"),
    Place("secrets", "odd = secrets.randbelow(1000) < 1000 * P", "", "import secrets"),
    Place("os.urandom", "odd = os.urandom(1)[0] < 256 * P", "", "import os"),
    Place("uuid", "odd = uuid.uuid4().int % 1000 < 1000 * P", "", "import uuid"),
    Place("the clock", "odd = time.perf_counter_ns() % 1000 < 1000 * P", "", "import time"),
    Place("id", "k = object()\nodd = id(k) // 16 % 64 < 64 * P"),
    Place("hash", "k = object()\nodd = hash(k) % 64 < 64 * P"),
    Place("the process", "k += 1\nodd = k > T and os.getpid() % 2 >= 0", "k = 0", "import os"),
    # True arrays that θ is written into.
    Place("out= and a norm", "np.subtract(t, theta0, out=kept)\nodd = np.linalg.norm(kept) > 1e-2", "theta0 = 0.9 * theta\nkept = np.zeros(clients.dim)"),
    Place("a second name", "v *= 0.5\nv += t\nodd = np.abs(w).max() > 0.3", "v = np.zeros(clients.dim)\nw = v"),
    Place("a second name in a dict", "v = kept['v']\nv *= 0.5\nv += t\nodd = np.abs(kept['v']).max() > 0.3", "kept = {'v': np.zeros(clients.dim)}"),
    Place("an attribute", "np.add(t, 0.0, out=k.v)\nodd = np.abs(k.v).max() < 0.5", "k = K()\nk.v = np.zeros(clients.dim)", "class K: pass"),
    Place("a view of an array", "v += t\nodd = np.abs(whole).max() > 1", "whole = np.zeros((2, clients.dim))\nv = whole[0]"),
    Place("reshape", "w = v.reshape(1, -1)\nv += t\nodd = np.abs(w).max() > 1", "v = np.zeros(clients.dim)"),
    Place("clip in place", "np.subtract(t, theta0, out=v)\nnp.clip(v, -0.1, 0.1, out=v)\nt = theta0 + v\nodd = False", "theta0 = 0.5 * theta\nv = np.zeros(clients.dim)"),
    Place("copyto", "np.copyto(v, t)\nodd = np.abs(v).max() < 0.5", "v = np.zeros(clients.dim)"),
    Place("add.at", "np.add.at(v, np.arange(clients.dim), t)\nodd = np.abs(v).max() > 1", "v = np.zeros(clients.dim)"),
    Place("a slice", "v[:] = t\nodd = np.abs(v).max() < 0.5", "v = np.zeros(clients.dim)"),
    Place("out= of steps", "clients.fields(t, out=rows)\nodd = np.abs(rows).max() < 0.5", "rows = np.zeros((clients.n, clients.dim))"),
    Place("a local array of a helper", "odd = far(t)", "", "import numpy\ndef far(t):\n    v = numpy.zeros(len(t))\n    w = v\n    v += t\n    found = numpy.abs(w).max()\n    del w\n    return found > 0.5"),
    Place("an array in a default", "odd = far(t) > 0.5", "", "import numpy\ndef far(t, v=numpy.zeros(2)):\n    v += t\n    return numpy.abs(far.__defaults__[0]).max()"),
    Place("the argument twice in a statement", "v = np.subtract(np.add(v, t, out=v), v, out=v)\nt = t + 0.0 * v + 0.1 * v\nodd = False", "v = np.zeros(clients.dim)"),
    # What is read of a symbol.
    Place("its text", "odd = len(str(t)) % 2 == 0"),
    Place("its format", "odd = 'symbol' not in f'{t}'"),
    Place("an exception", "try:\n    odd = float(t[0]) < 0.5\nexcept Exception:\n    odd = False"),
    Place("its type", "k += 1\nodd = k > T and type(t) is np.ndarray", "k = 0"),
    Place("the clients' type", "k += 1\nodd = k > T and type(clients).__name__ == 'Clients'", "k = 0"),
    Place("pickle", "odd = len(pickle.dumps(t)) % 2 == 0", "", "import pickle"),
    _counted("vars in a dict of a helper", "HELPER.__dict__['t'] += 1", "HELPER.__dict__['t']", top="import HELPER"),
    _counted("attrgetter", "", "get(HELPER)()", top="import operator, HELPER\nget = operator.attrgetter('ti' + 'ck')"),
    _counted("two closures of one code", "", "make(HELPER)()", top="import HELPER, math\ndef make(module):\n    def tick():\n        module.tick()\n        return module.t\n    return tick\nmath.t = 0\nmath.tick = lambda: 0\nfirst = make(math)"),
    _counted("a logger's level", "log.setLevel(log.level + 1)", "log.level", "log.setLevel(0)", "import logging\nlog = logging.getLogger('odd')"),
    _counted("a logger's attribute", "log.n += 1", "log.n", "log.n = 0", "import logging\nlog = logging.getLogger('odd')"),
    _counted("a logger's handlers", "log.addHandler(logging.NullHandler())", "len(log.handlers)", "log.handlers.clear()", "import logging\nlog = logging.getLogger('odd')"),
    _counted("a partial's attribute", "tick.n += 1", "tick.n", "tick.n = 0", "import functools\ntick = functools.partial(max, 1)"),
    _counted("a cached function's attribute", "same.n += 1", "same.n", "same.n = 0", "import functools\n@functools.lru_cache\ndef same(x): return x"),
    _counted("an ordered dict's attribute", "kept.n += 1", "kept.n", "kept.n = 0", "from collections import OrderedDict\nkept = OrderedDict()"),
    _counted("an algorithm's attribute", "other.n += 1", "other.n", "other.n = 0", "import exactfed as ef\n@ef.algorithm(kind=__name__.replace('_', '-') + '-other')\ndef other(clients, theta):\n    yield theta"),
    _counted("an algorithm's version", "other.version += 'x'", "len(other.version)", "other.version = ''", "import exactfed as ef\n@ef.algorithm(kind=__name__.replace('_', '-') + '-other')\ndef other(clients, theta):\n    yield theta"),
    _counted("an attribute of a library's function", "copy.copy.n += 1", "copy.copy.n", "copy.copy.n = 0", "import copy"),
    _counted("an attribute of a library's class", "Counter.n += 1", "Counter.n", "Counter.n = 0", "from collections import Counter"),
    _counted("an attribute of numpy's function", "np.mean.n += 1", "np.mean.n", "np.mean.n = 0"),
    _counted("a list in an attribute of a library", "Counter.kept.append(1)", "len(Counter.kept)", "Counter.kept = []", "from collections import Counter"),
    _counted("documentation", "rule.__doc__ = (rule.__doc__ or '') + 'x'", "len(rule.__doc__)", "rule.__doc__ = ''"),
    _counted("annotations", "rule.__annotations__['n'] = rule.__annotations__.get('n', 0) + 1", "rule.__annotations__['n']", "rule.__annotations__.clear()"),
    _counted("a function's name", "same.__name__ += 'x'", "len(same.__name__)", "same.__name__ = ''", "def same(x): return x"),
    _counted("defaults that are replaced", "same.__defaults__ = (same() + 1,)", "same()", "same.__defaults__ = (0,)", "def same(n=0): return n"),
    _counted("setattr of documentation", "setattr(same, '__doc__', (same.__doc__ or '') + 'x')", "len(same.__doc__)", "same.__doc__ = ''", "def same(x): return x"),
    _counted("a module that claims another name", "K.n += 1", "K.n", "K.n = 0", "class K: n = 0\nK.__module__ = 'types'"),
    _counted("an unset slot", "", "k.n", top="class K:\n    __slots__ = ('n', 'made')\n    def __getattr__(self, name):\n        self.made.append(1)\n        return len(self.made)\nk = K()\nk.made = []"),
    _counted("a private slot", "k.go()", "k.now()", top="class K:\n    __slots__ = ('__n',)\n    def __init__(self): self.__n = 0\n    def go(self): self.__n += 1\n    def now(self): return self.__n\nk = K()"),
    _counted("a dict that hides its items", "k['n'] = k.get('n', 0) + 1", "k['n']", top="class K(dict):\n    def items(self): return []\n    def __iter__(self): return iter([])\n    def __len__(self): return 0\nk = K()"),
    _counted("an exception's note", "E.args = (E.args[0] + 1,)", "E.args[0]", "E.args = (0,)", "E = ValueError(0)"),
    _counted("seeds that are spawned", "draws.spawn(1)", "draws.bit_generator.seed_seq.n_children_spawned", top="import numpy\ndraws = numpy.random.default_rng(3)"),
    _counted("streams that are spawned", "", "(draws.spawn(1)[0].random() < 0.3) * (T + 1)", top="import numpy\ndraws = numpy.random.default_rng(3)"),
    _counted("the flags of an array", "kept.flags.writeable = not kept.flags.writeable", "kept.flags.writeable * (T + 1)", top="import numpy\nkept = numpy.zeros(100)"),
    _own("the flags of a local array", "kept.flags.writeable = k % T != 0\nk += 1\nodd = not kept.flags.writeable", "kept, k = np.zeros(100), 1"),
    _own("a private attribute of slots", "k.go()\nodd = k.now() > T", "k = K()", "class K:\n    __slots__ = ('__n',)\n    def __init__(self): self.__n = 0\n    def go(self): self.__n += 1\n    def now(self): return self.__n"),
    _own("a local cache", "k += 1\nodd = late(k % (T + 2)) > T", "n, k = 0, 0\n@functools.lru_cache\ndef late(k):\n    nonlocal n\n    n += 1\n    return n", "import functools"),
    _own("a mask that is kept", "mask = clients.rng.random(clients.dim) < 0.5\nt = t + 0.1 * mask * t\nk = (k + 1) % T\nodd = k == 0", "k = 0"),
    _own("which name has a value", "if k % T:\n    a = 0\nelse:\n    b = 0\ntry:\n    odd = b == 0\nexcept UnboundLocalError:\n    odd = False\ntry:\n    del a\nexcept UnboundLocalError:\n    del b\nif (k + 1) % T:\n    a = 5\nelse:\n    b = 5\nk += 1\nk %= 2 * T", "k = 1"),
    _own("a name that is deleted", "try:\n    mark\n    odd = True\n    del mark\n    other = 7\nexcept UnboundLocalError:\n    odd = False\n    del other\n    mark = 7", "other = 7"),
    _own("a bit generator", "odd = draws.random() < 0.2", "bits = np.random.PCG64(SEED)\ndraws = np.random.Generator(bits)"),
    _own("spawned streams", "odd = draws.spawn(1)[0].random() < 0.3", "draws = np.random.default_rng(SEED)"),
    # State of the run itself, which is followed.
    _own("a local number", "k += 1\nodd = k > T", "k = 0"),
    _own("a local list", "kept.append(1)\nodd = len(kept) > T", "kept = []"),
    _own("a list that is popped", "odd = kept.pop()", "kept = ([False] * T + [True] * 99)[::-1]"),
    _own("a local deque", "kept.rotate(1)\nodd = kept[0]", "kept = deque([True] + [False] * T)", "from collections import deque"),
    _own("a local dict", "kept['n'] = kept.get('n', 0) + 1\nodd = kept['n'] > T", "kept = {}"),
    _own("a local array", "kept += 1\nodd = kept[0] > T", "kept = np.zeros(3)"),
    _own("a view of a local array", "view[0] += 1\nodd = whole[3] > T", "whole = np.zeros((2, 3)).reshape(-1)\nview = whole[3:]"),
    _own("an array of whole numbers", "kept[k % 2] += 1\nk += 1\nodd = kept.sum() > T", "kept, k = np.zeros(2, int), 0"),
    _own("an object", "k.n += 1\nodd = k.n > T", "k = K()", "class K: n = 0"),
    _own("slots", "k.go()\nodd = k.n > T", "k = K()", "class K:\n    __slots__ = ('n',)\n    def __init__(self): self.n = 0\n    def go(self): self.n += 1"),
    _own("a data class", "k.n += 1\nodd = k.n > T", "k = K()", "from dataclasses import dataclass\n@dataclass\nclass K: n: int = 0"),
    _own("a named tuple", "k = k._replace(n=k.n + 1)\nodd = k.n > T", "k = K(0)", "from collections import namedtuple\nK = namedtuple('K', 'n')"),
    _own("a namespace", "k.n += 1\nodd = k.n > T", "k = SimpleNamespace(n=0)", "from types import SimpleNamespace"),
    _own("a local closure", "odd = tick() > T", "n = 0\ndef tick():\n    nonlocal n\n    n += 1\n    return n"),
    _own("a local default", "odd = tick() > T", "def tick(n=[0]):\n    n[0] += 1\n    return n[0]"),
    _own("a local iterator", "odd = next(kept)", "kept = iter([False] * T + [True] * 99)"),
    _own("a method of an iterator", "odd = following()", "following = iter([False] * T + [True] * 99).__next__"),
    _own("itertools.cycle", "odd = next(kept)", "kept = itertools.cycle([False] * T + [True])", "import itertools"),
    _own("itertools.chain", "odd = next(kept)", "kept = itertools.chain(itertools.repeat(False, T), itertools.repeat(True))", "import itertools"),
    _own("enumerate", "k, odd = next(kept)", "kept = enumerate([False] * T + [True] * 99)"),
    _own("zip and map", "odd, _ = next(kept)", "kept = zip(map(bool, [0] * T + [1] * 99), range(999))"),
    _own("a local generator", "odd = next(kept)", "def schedule():\n    yield from [False] * T\n    while True: yield True\nkept = schedule()"),
    _own("a generator expression", "odd = next(kept)", "kept = (k >= T for k in range(999))"),
    _own("a seeded generator", "odd = draws.random() < 0.2", "draws = np.random.default_rng(SEED)"),
    _own("a seeded Random", "odd = draws.random() < 0.2", "draws = random.Random(SEED)", "import random"),
    _own("a seeded RandomState", "odd = draws.rand() < 0.2", "draws = np.random.RandomState(SEED)"),
    _own("a schedule of the module", "k += 1\nodd = ODD[k]", "k = -1", "ODD = [False] * T + [True] * 99"),
    _own("a rule of a helper", "k += 1\nodd = HELPER.is_late(k, T)", "k = 0", "import HELPER"),
    _own("a cache of pure results", "k += 1\nodd = late(k)", "k = 0", "import functools\n@functools.lru_cache\ndef late(k): return k > T"),
    _own("a cached matrix", "k += 1\nodd = table(9)[0, 0] < k - T", "k = 0", "import functools, numpy\n@functools.lru_cache(maxsize=None)\ndef table(n): return numpy.zeros((n, n))"),
    _own("a class that is changed", "k.n += 1\nif k.n > T: k.__class__ = Late\nodd = k.odd", "k = Early()", "class Early:\n    n, odd = 0, False\nclass Late(Early): odd = True"),
    _own("an enum of the run", "k += 1\nif k > T: mode = Mode.LATE\nodd = mode is Mode.LATE", "k, mode = 0, Mode.EARLY", "import enum\nclass Mode(enum.Enum):\n    EARLY = 1\n    LATE = 2"),
    _own("a bytearray", "kept.append(1)\nodd = len(kept) > T", "kept = bytearray()"),
    _own("a text", "kept += 'x'\nodd = len(kept) > T", "kept = ''"),
    _own("a set", "kept.add(len(kept))\nodd = len(kept) > T", "kept = set()"),
    _own("getattr of an object", "setattr(k, 'n', getattr(k, 'n') + 1)\nodd = getattr(k, 'n') > T", "k = SimpleNamespace(n=0)", "from types import SimpleNamespace"),
    _own("an operator", "k = k + 1\nodd = k > T", "k = K(0)", "class K:\n    def __init__(self, n): self.n = n\n    def __add__(self, n): return K(self.n + n)\n    def __gt__(self, n): return self.n > n"),
    _own("an array that θ is written into", "v *= 0.5\nv += t\nt = t + 0.01 * v\nodd = False", "v = np.zeros(clients.dim)"),
    _own("out= that is bound again", "v = np.add(v, t, out=v)\nv = 0.5 * v\nt = t + 0.01 * v\nodd = False", "v = np.zeros(clients.dim)"),
    _own("an attribute that θ is written into", "k.v *= 0.5\nk.v += t\nt = t + 0.01 * k.v\nodd = False", "k = K()\nk.v = np.zeros(clients.dim)", "class K: pass"),
    _own("an entry that θ is written into", "k['v'] -= 0.1 * t\nk['v'] /= 2.0\nt = t + 0.01 * k['v']\nodd = False", "k = {'v': np.zeros(clients.dim)}"),
]  # fmt: skip

HELPER = """
t = 0

def restart():
    global t
    t = 0

def tick():
    global t
    t += 1
    return t

def is_late(now, begin):
    return now > begin

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return tick()
"""

#: What an odd round does.
CHANGES = [
    "t = 0.5 * t",
    "t = t + 0.3",
    "gamma = 0.97 * gamma",
    "velocity = 0.0 * velocity",
    "ends = clients.local_steps(t, 0.5 * gamma, 1)\nt = 0.5 * t + 0.5 * clients.mean(ends)",
    "rows = 0.5 * rows",
]


def program(seed: int, rounds: int, helper: str, file: str) -> tuple[Place, str]:
    """A place, and the source of a module whose function ``rule`` is the algorithm."""
    rng = np.random.default_rng(seed)
    # Each place once before any comes twice.
    order = np.random.default_rng(seed // len(PLACES)).permutation(len(PLACES))
    place = PLACES[order[seed % len(PLACES)]]
    a, b, c, e = np.round(rng.uniform(0.1, 0.7, size=4), 2)
    lines = [
        f"ends = clients.local_steps(theta, gamma, {rng.integers(1, 4)}, {0.2 * c:.3f} * rows)",
        f"velocity = {a} * velocity + (clients.mean(ends) - theta)",
        f"t = theta + {0.5 + b / 2:.3f} * velocity + {0.1 * e:.3f}",
        f"rows = {b} * rows + {0.2 * a:.3f} * (ends - theta)",
    ]
    body = "\n".join(
        [
            "velocity, rows = np.zeros(clients.dim), np.zeros((clients.n, clients.dim))",
            place.begin,
            "while True:",
            textwrap.indent("\n".join([*lines, place.each, "if odd:"]), "    "),
            textwrap.indent(CHANGES[rng.integers(len(CHANGES))], "        "),
            "    theta = t\n    yield theta",
        ]
    )
    source = "\n".join(
        [
            "import numpy as np",
            place.top,
            "def rule(clients, theta, gamma):",
            textwrap.indent(body, "    "),
        ]
    )
    probability = float(np.round(10 ** rng.uniform(-2, -0.7), 3))
    values = {
        "HELPER": helper,
        "FILE": repr(file),
        "SEED": str(int(rng.integers(100))),
        "T": str(int(rng.integers(3, rounds))),
        "P": str(probability),
    }
    return place, _replaced(source, values)


def _replaced(source: str, values: dict[str, str]) -> str:
    import re

    return re.sub(r"\b(HELPER|FILE|SEED|T|P)\b", lambda found: values[found[0]], source)
