"""Makes mnist-pairs.npz of the IDX files of MNIST: 25 clients with one even and one odd digit.

`python mnist-pairs.py FOLDER` writes it next to this script (numpy). Digits are projected on their
first 50 principal components; client (e, o) draws 1548 records of the first 774 digits e and of
774 digits o, with replacement, of which 1238 are for training.
"""

import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1])
pixels = np.frombuffer((folder / "train-images-idx3-ubyte").read_bytes(), np.uint8, offset=16)
digits = np.frombuffer((folder / "train-labels-idx1-ubyte").read_bytes(), np.uint8, offset=8)
pixels = pixels.reshape(len(digits), -1) / 255
pixels -= pixels.mean(axis=0)
components = np.linalg.eigh(pixels.T @ pixels)[1][:, :-51:-1]
records = pixels @ components
first = [np.flatnonzero(digits == digit)[:774] for digit in range(10)]
rng = np.random.RandomState(2021)
drawn = [
    rng.choice(np.concatenate([first[even], first[odd]]), size=1548)
    for even in range(0, 10, 2)
    for odd in range(1, 10, 2)
]
np.savez_compressed(
    Path(__file__).parent / "mnist-pairs.npz",
    x=records[np.concatenate(drawn)],
    y=(digits[np.concatenate(drawn)] % 2 == 0).astype(int),
    client=np.repeat(np.arange(25), 1548),
    test=np.tile(np.arange(1548) >= 1238, 25),
)
