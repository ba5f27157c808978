"""Makes mnist.npz of the four IDX files of MNIST: 100 clients by the order of the files.

`python mnist.py FOLDER` writes it next to this script (numpy). Pixels are those of `mnist.scale` of
LIBSVM: v/255 with six digits. Those that are 0 in all training records are left out.
"""

import sys
from pathlib import Path

import numpy as np


def read(name):
    """Return the bytes of an IDX file, one record in each row."""
    data = (Path(sys.argv[1]) / name).read_bytes()
    shape = [int.from_bytes(data[at : at + 4]) for at in range(4, 4 + 4 * data[3], 4)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape[0], -1)


train, test = read("train-images-idx3-ubyte"), read("t10k-images-idx3-ubyte")
labels, test_labels = read("train-labels-idx1-ubyte"), read("t10k-labels-idx1-ubyte")
scaled = np.array([float(f"{value / 255:.6g}") for value in range(256)])
used = train.any(axis=0)
np.savez_compressed(
    Path(__file__).parent / "mnist.npz",
    x_train=scaled[train[:, used]],
    y_train=labels[:, 0],
    x_test=scaled[test[:, used]],
    y_test=test_labels[:, 0],
    client=np.concatenate([np.repeat(np.arange(100), 600), np.repeat(np.arange(100), 100)]),
)
